{{- /* 56 characters: the pod of the topics' Job adds seven. */ -}}
{{- define "martlet.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 56 | trimSuffix "-" -}}
{{- end -}}

{{- /* 47 characters: the topics' Job adds 16, and its pods must have room for a suffix; a StatefulSet's revision label adds a
hash. */ -}}
{{- define "martlet.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 47 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 47 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 47 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "martlet.selectorLabels" -}}
app.kubernetes.io/name: {{ include "martlet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "martlet.labels" -}}
{{ include "martlet.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "martlet.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "martlet.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "martlet.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The port that the service listens on: what follows the last colon. */ -}}
{{- define "martlet.port" -}}
{{- $listen := dig "http" "listen" "0.0.0.0:9464" .Values.config -}}
{{- $port := regexFind "[0-9]+$" $listen -}}
{{- if or (not $port) (eq $port "0") -}}
{{- fail (printf "config.http.listen: the chart must know the port; found %q, needed host:port" $listen) -}}
{{- end -}}
{{- if regexMatch "^(unix:|localhost:|127\\.|\\[::1\\])" $listen -}}
{{- fail (printf "config.http.listen: the kubelet's probes and Prometheus come from outside of the pod; found %q, needed an address that they reach, such as 0.0.0.0:9464" $listen) -}}
{{- end -}}
{{- $port -}}
{{- end -}}

{{- /* Whole seconds, rounded up, of a duration as the service writes it: "250ms", "30s", "1.5m". */ -}}
{{- define "martlet.seconds" -}}
{{- $text := . | toString -}}
{{- if not (regexMatch "^[0-9]+(\\.[0-9]+)? ?(ns|us|ms|s|m|h|d)$" $text) -}}
{{- fail (printf "config.delivery.drainTimeout: found %q, needed a number with a unit (ms, s, m, h), such as 25s; or set terminationGracePeriodSeconds" $text) -}}
{{- end -}}
{{- $units := dict "ns" 0.000000001 "us" 0.000001 "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0 -}}
{{- $number := regexFind "^[0-9.]+" $text | float64 -}}
{{- /* 0.3 * 10 is a little more than 3: a thousandth of a second does not make it another one. */ -}}
{{- subf (mulf $number (get $units (regexFind "[a-z]+$" $text))) 0.001 | ceil | int64 -}}
{{- end -}}

{{- /* After the drain, the last commit takes 3 seconds at most, and leaving the group 4. */ -}}
{{- define "martlet.terminationGracePeriodSeconds" -}}
{{- $given := .Values.terminationGracePeriodSeconds -}}
{{- $text := dig "delivery" "drainTimeout" "25s" .Values.config -}}
{{- if and (contains "${" $text) (not (kindIs "invalid" $given)) -}}
{{- $given | int64 -}}
{{- else -}}
{{- $drain := include "martlet.seconds" $text | int64 -}}
{{- $period := kindIs "invalid" $given | ternary (add $drain .Values.terminationGracePeriodMargin) ($given | int64) -}}
{{- $least := add $drain 7 -}}
{{- if lt $period $least -}}
{{- fail (printf "terminationGracePeriodSeconds: a pod would be killed before it has committed; found %d, needed %d at least: config.delivery.drainTimeout and 7 seconds" $period $least) -}}
{{- end -}}
{{- $period -}}
{{- end -}}
{{- end -}}

{{- /* A value as text; a large whole number without an exponent. */ -}}
{{- define "martlet.number" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{- /* The topics that requests are read from, as a JSON list. */ -}}
{{- define "martlet.requestTopics" -}}
{{- $topics := dig "topics" "requests" (list "push.requests") .Values.config.kafka -}}
{{- if kindIs "string" $topics }}{{ $topics = list $topics }}{{ end -}}
{{- $topics | toJson -}}
{{- end -}}

{{- /* The brokers as one text. */ -}}
{{- define "martlet.brokers" -}}
{{- $brokers := .Values.config.kafka.brokers -}}
{{- if kindIs "slice" $brokers }}{{ $brokers = join "," $brokers }}{{ end -}}
{{- $brokers -}}
{{- end -}}

{{- /* The fewest pods that the release has. */ -}}
{{- define "martlet.fewestReplicas" -}}
{{- if .Values.autoscaling.enabled }}{{ .Values.autoscaling.minReplicas | int }}
{{- else if .Values.keda.enabled }}{{ .Values.keda.minReplicas | int }}
{{- else }}{{ .Values.replicaCount | int }}{{ end -}}
{{- end -}}
