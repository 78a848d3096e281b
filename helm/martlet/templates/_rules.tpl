{{- /*
The groups of rules/martlet.yaml as JSON, for this release: its pods in place of `job="martlet"`, its own deferred topic,
and the thresholds of the values in place of the number that ends an alert's expression. What is recorded has the
release's labels, because several releases may record under the same names.
*/ -}}
{{- define "martlet.rules" -}}
{{- $settings := .Values.prometheusRule -}}
{{- $limits := $settings.thresholds -}}
{{- $thresholds := dict
  "MartletConsumerLag" $limits.consumerLagRecords
  "MartletLagGrowing" $limits.lagGrowthRecords
  "MartletSlowDelivery" $limits.endToEndSeconds
  "MartletErrors" $limits.errorRatio
  "MartletFailures" $limits.failedRatio
  "MartletRejections" $limits.rejectedRatio
  "MartletBadTokens" $limits.badTokenRatio
  "MartletCertificateExpiring" (mul $limits.certificateDays 86400)
  "MartletParkedGrowing" $limits.parkedGrowthRecords
  "MartletConnectionChurn" $limits.connectionsOpened
  "MartletThrottled" $limits.throttledRatio
  "MartletInvalidRequests" $limits.invalidRatio
  "MartletRebalancing" $limits.rebalances -}}
{{- $pods := ternary "[0-9]+" "[a-z0-9]+-[a-z0-9]+" (eq .Values.kind "StatefulSet") -}}
{{- $selector := printf "namespace=%q,pod=~%q" .Release.Namespace (printf "%s-%s" (include "martlet.fullname" .) $pods) -}}
{{- $deferred := dig "topics" "deferred" "push.deferred" .Values.config.kafka | quote -}}
{{- $groups := (.Files.Get "rules/martlet.yaml" | fromYaml).groups -}}
{{- range $group := $groups -}}
{{- range $rule := $group.rules -}}
{{- $expr := $rule.expr | replace "job=\"martlet\"" $selector | replace "\"push.deferred\"" $deferred | replace "(instance)" "(pod)" -}}
{{- if $rule.record -}}
{{- $_ := set $rule "labels" (dict "namespace" $.Release.Namespace "release" $.Release.Name) -}}
{{- else -}}
{{- if hasKey $thresholds $rule.alert -}}
{{- $expr = regexReplaceAll "[0-9.]+$" $expr (get $thresholds $rule.alert | toString) -}}
{{- end -}}
{{- $_ := set $rule "labels" (merge dict $settings.alertLabels $rule.labels) -}}
{{- range $key, $text := $rule.annotations -}}
{{- $_ := set $rule.annotations $key ($text | replace "$labels.instance" "$labels.pod") -}}
{{- end -}}
{{- with $settings.runbookURL -}}
{{- $_ := set $rule.annotations "runbook_url" (printf "%s%s" . $rule.alert) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $rule "expr" $expr -}}
{{- end -}}
{{- end -}}
{{- $groups | toJson -}}
{{- end -}}
