{{- /*
The configuration as JSON, after the checks that only the chart can make: what would put a secret into a ConfigMap, and
what does not fit the kind of workload.
*/ -}}
{{- define "martlet.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if not (include "martlet.brokers" .) -}}
{{- fail "config.kafka.brokers: name at least one broker, such as kafka:9092" -}}
{{- end -}}
{{- if not $config.apps -}}
{{- fail "config.apps: name at least one app" -}}
{{- end -}}
{{- range $group := list "properties" "consumerProperties" "producerProperties" -}}
{{- range $name, $value := get $config.kafka $group | default dict -}}
{{- if and (regexMatch "(password|secret|\\.key\\.pem|^sasl\\.oauthbearer\\.config)$" $name) (not (kindIs "map" $value)) -}}
{{- if not (regexMatch "^\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}$" (toString $value)) -}}
{{- fail (printf "config.kafka.%s: %s is a secret and would stand in a ConfigMap; use { file: /secrets/NAME/KEY }, or ${NAME} from the environment" $group $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if contains "-----BEGIN" ($config | toJson) -}}
{{- fail "config: there is a key or a certificate in it, which would stand in a ConfigMap; name a file below /secrets instead" -}}
{{- end -}}
{{- $instance := $config.kafka.groupInstanceId -}}
{{- if eq .Values.kind "StatefulSet" -}}
{{- if not $instance -}}
{{- $_ := set $config.kafka "groupInstanceId" "${POD_NAME}" -}}
{{- else if not (or (contains "${POD_NAME}" $instance) (contains "${HOSTNAME}" $instance)) -}}
{{- fail "config.kafka.groupInstanceId: it must differ from pod to pod; leave it out, or put ${POD_NAME} into it" -}}
{{- end -}}
{{- else if $instance -}}
{{- fail "config.kafka.groupInstanceId: the pods of a Deployment have no lasting names; set kind to StatefulSet" -}}
{{- end -}}
{{- $config | toPrettyJson -}}
{{- end -}}
