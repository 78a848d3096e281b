{{- /*
The alerts. `SELECTOR` stands for the labels of the release; text in backquotes is left to Prometheus. A counter that has
no zero series shows its first growth only from the second sample on, so no alert waits for a single event of such a one.
*/ -}}
{{- define "martlet.alerts" -}}
{{- with .Values.prometheusRule.thresholds -}}
- alert: MartletAbsent
  expr: absent(martlet_build_info{SELECTOR})
  for: 5m
  labels: { severity: critical }
  annotations:
    summary: No replica of Martlet is running
    description: No metrics of Martlet have come in for 5 minutes, so no notification is delivered. Look at the pods' state and last log lines; exit code 78 is the configuration.
- alert: MartletConsumerLag
  expr: sum by (topic) (martlet_consumer_lag_records{SELECTOR,topic!={{ dig "topics" "deferred" "push.deferred" $.Values.config.kafka | quote }}}) > {{ .consumerLagRecords | int64 }}
  for: 10m
  labels: { severity: warning }
  annotations:
    summary: Martlet falls behind on {{ `{{ $labels.topic }}` }}
    description: {{ `'{{ $value | humanize }} records wait. With paused partitions, APNs or Kafka is slower than the input; without, replicas are too few or too small.'` }}
- alert: MartletSlowDelivery
  expr: histogram_quantile(0.99, sum by (le) (rate(martlet_end_to_end_seconds_bucket{SELECTOR}[5m]))) > {{ .endToEndSeconds }}
  for: 10m
  labels: { severity: warning }
  annotations:
    summary: Notifications take long
    description: {{ `'1 in 100 took longer than {{ $value | humanizeDuration }} from its request to its result. martlet_record_to_send_seconds has the wait before APNs, martlet_send_to_answer_seconds APNs itself.'` }}
- alert: MartletFailures
  expr: sum by (app) (rate(martlet_notifications_total{SELECTOR,status="failed"}[10m])) / sum by (app) (rate(martlet_notifications_total{SELECTOR}[10m])) > {{ .failedRatio }}
  for: 10m
  labels: { severity: warning }
  annotations:
    summary: Notifications of {{ `{{ $labels.app }}` }} fail
    description: {{ `'{{ $value | humanizePercentage }} of the notifications of {{ $labels.app }} ran out of attempts. martlet_retries_total has the causes.'` }}
- alert: MartletRejections
  expr: sum by (app) (rate(martlet_rejections_total{SELECTOR,reason!~"Unregistered|ExpiredToken|BadDeviceToken|DeviceTokenNotForTopic"}[10m])) / sum by (app) (rate(martlet_attempts_total{SELECTOR}[10m])) > {{ .rejectedRatio }}
  for: 10m
  labels: { severity: warning }
  annotations:
    summary: APNs rejects notifications of {{ `{{ $labels.app }}` }}
    description: {{ `'APNs rejects {{ $value | humanizePercentage }} of what is sent for {{ $labels.app }}, and not because of dead tokens. martlet_rejections_total has the reasons.'` }}
- alert: MartletBadTokens
  expr: sum by (app) (rate(martlet_rejections_total{SELECTOR,reason=~"BadDeviceToken|DeviceTokenNotForTopic"}[10m])) / sum by (app) (rate(martlet_attempts_total{SELECTOR}[10m])) > {{ .badTokenRatio }}
  for: 10m
  labels: { severity: warning }
  annotations:
    summary: Most tokens of {{ `{{ $labels.app }}` }} are not its own
    description: {{ `'{{ $value | humanizePercentage }} of the tokens of {{ $labels.app }} are of another app or environment. Before they are purged: are bundleId and environment right?'` }}
- alert: MartletAppDeferred
  expr: sum by (app) (increase(martlet_deferred_total{SELECTOR}[10m])) > 0
  for: 10m
  labels: { severity: warning }
  annotations:
    summary: Requests of {{ `{{ $labels.app }}` }} are parked
    description: {{ `'APNs refuses the credentials of {{ $labels.app }}, throttles it or cannot be reached, or the app is at its limit. /readyz names the apps that cannot be served.'` }}
- alert: MartletConnectFailures
  expr: sum by (app, cause) (increase(martlet_connections_closed_total{SELECTOR,cause=~"unreachable|tls"}[10m])) > 5
  for: 10m
  labels: { severity: warning }
  annotations:
    summary: Connections to APNs fail for {{ `{{ $labels.app }}` }}
    description: {{ `'{{ $value | humanize }} connections for {{ $labels.app }} could not be made in 10 minutes ({{ $labels.cause }}). Look at egress rules, proxies, and the certificate of the app.'` }}
- alert: MartletThrottled
  expr: sum by (app) (rate(martlet_retries_total{SELECTOR,cause="throttled"}[10m])) / sum by (app) (rate(martlet_attempts_total{SELECTOR}[10m])) > {{ .throttledRatio }}
  for: 15m
  labels: { severity: warning }
  annotations:
    summary: APNs throttles {{ `{{ $labels.app }}` }}
    description: {{ `'APNs answers {{ $value | humanizePercentage }} of what is sent for {{ $labels.app }} with TooManyRequests: the same devices get too many notifications.'` }}
- alert: MartletInvalidRequests
  expr: sum(rate(martlet_requests_invalid_total{SELECTOR}[10m])) / sum(rate(martlet_records_consumed_total{SELECTOR}[10m])) > {{ .invalidRatio }}
  for: 10m
  labels: { severity: warning }
  annotations:
    summary: Requests break the contract
    description: {{ `'{{ $value | humanizePercentage }} of the records break the contract. martlet_requests_invalid_total has the rules; the results and the dead letters have the records.'` }}
- alert: MartletPublicationFailures
  expr: sum by (topic) (increase(martlet_publication_failures_total{SELECTOR}[10m])) > 0
  for: 5m
  labels: { severity: critical }
  annotations:
    summary: Kafka does not take {{ `{{ $labels.topic }}` }}
    description: A partition does not move on before Kafka has taken its results. Look at the topic, its ACLs and its record size limit; the log has the cause under publication_refused and publication_repeated.
- alert: MartletCommitFailures
  expr: sum(increase(martlet_commit_failures_total{SELECTOR}[10m])) > 5
  for: 10m
  labels: { severity: warning }
  annotations:
    summary: Offsets cannot be committed
    description: What is not committed may be sent again after a restart. Look at the group's coordinator and its ACLs.
- alert: MartletKafkaErrors
  expr: sum(increase(martlet_kafka_errors_total{SELECTOR}[10m])) > 20
  for: 10m
  labels: { severity: warning }
  annotations:
    summary: The Kafka client reports errors
    description: {{ `'{{ $value | humanize }} errors in 10 minutes; the log has their texts.'` }}
- alert: MartletRebalancing
  expr: max by (pod) (increase(martlet_rebalances_total{SELECTOR}[30m])) > {{ .rebalances }}
  for: 5m
  labels: { severity: warning }
  annotations:
    summary: The consumer group does not come to rest
    description: {{ `'{{ $labels.pod }} saw {{ $value | humanize }} rebalances in half an hour. Look for restarts, and for an autoscaler that goes up and down.'` }}
- alert: MartletPaused
  expr: sum by (pod) (min_over_time(martlet_paused_partitions{SELECTOR}[5m])) > 0
  for: 10m
  labels: { severity: warning }
  annotations:
    summary: Partitions stay paused on {{ `{{ $labels.pod }}` }}
    description: As much as allowed is in flight and does not get less. APNs or Kafka is slower than the input; see delivery.maxInFlight and the connections.
- alert: MartletIdleReplica
  expr: martlet_assigned_partitions{SELECTOR} == 0
  for: 30m
  labels: { severity: info }
  annotations:
    summary: {{ `'{{ $labels.pod }} has no partitions'` }}
    description: There are more replicas than partitions of the request topics.
- alert: MartletReloadRefused
  expr: sum by (pod) (increase(martlet_reload_failures_total{SELECTOR}[15m])) > 0
  labels: { severity: warning }
  annotations:
    summary: {{ `'{{ $labels.pod }} refused a new configuration'` }}
    description: The former one stays in force. The log names what is wrong; martlet check does too.
{{- end -}}
{{- end -}}
