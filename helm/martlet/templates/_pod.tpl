{{- /* What the pods of the workload and of the test have in common: identity, security, placement of secrets. */ -}}
{{- define "martlet.podIdentity" -}}
serviceAccountName: {{ include "martlet.serviceAccountName" . }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
automountServiceAccountToken: {{ .Values.serviceAccount.automountServiceAccountToken }}
enableServiceLinks: false
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "martlet.containerIdentity" -}}
image: {{ include "martlet.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
env:
  - name: POD_NAME
    valueFrom: { fieldRef: { fieldPath: metadata.name } }
  - name: POD_NAMESPACE
    valueFrom: { fieldRef: { fieldPath: metadata.namespace } }
  - name: NODE_NAME
    valueFrom: { fieldRef: { fieldPath: spec.nodeName } }
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: config
    mountPath: /etc/martlet
    readOnly: true
  {{- range $name, $secret := .Values.secrets }}
  - name: {{ printf "secret-%s" $name }}
    mountPath: {{ printf "/secrets/%s" $name }}
    readOnly: true
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- /* Whole directories, never single files: Kubernetes renews a file only where the directory is mounted. */ -}}
{{- define "martlet.volumes" -}}
- name: config
  configMap:
    name: {{ include "martlet.fullname" . }}
{{- range $name, $secret := .Values.secrets }}
- name: {{ printf "secret-%s" $name }}
  secret:
    secretName: {{ default $name ($secret | default dict).secretName }}
    # 0440: the group is the pod's fsGroup.
    defaultMode: 288
    {{- with ($secret | default dict).items }}
    items:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- if ($secret | default dict).optional }}
    optional: true
    {{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "martlet.podTemplate" -}}
metadata:
  annotations:
    kubectl.kubernetes.io/default-container: martlet
    checksum/config: {{ include "martlet.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  labels:
    {{- include "martlet.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
    {{- with .Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "martlet.podIdentity" . | nindent 2 }}
  terminationGracePeriodSeconds: {{ include "martlet.terminationGracePeriodSeconds" . }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    {{- $selector := dict "labelSelector" (dict "matchLabels" (include "martlet.selectorLabels" $ | fromYaml)) }}
    - {{ toYaml (hasKey . "labelSelector" | ternary . (merge (dict) $selector (omit . "labelSelector"))) | nindent 6 | trim }}
    {{- end }}
  {{- end }}
  {{- with .Values.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: martlet
      {{- include "martlet.containerIdentity" . | nindent 6 }}
      args:
        {{- toYaml (.Values.args | default (list "run" "--config" "/etc/martlet/martlet.json5")) | nindent 8 }}
      ports:
        - name: metrics
          containerPort: {{ include "martlet.port" . }}
          protocol: TCP
      {{- range $probe := list "startupProbe" "livenessProbe" "readinessProbe" }}
      {{- with get $.Values $probe }}
      {{ $probe }}:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      {{- with .Values.lifecycle }}
      lifecycle:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    {{- include "martlet.volumes" . | nindent 4 }}
{{- end -}}
