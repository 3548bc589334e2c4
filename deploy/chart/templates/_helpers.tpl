{{- define "gateway.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "gateway.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "gateway.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "gateway.fullname" .) }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "gateway.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Labels that select the pods of one role: (list $ "web") */}}
{{- define "gateway.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Web processes of the deployment: what each applies its share of a limit by while Redis is away. */}}
{{- define "gateway.processes" -}}
{{- if .Values.web.autoscaling.enabled }}{{ .Values.web.autoscaling.maxReplicas }}{{ else }}{{ max 1 (int .Values.web.replicas) }}{{ end }}
{{- end }}

{{- define "gateway.env" -}}
- {name: BASE_URL, value: {{ .Values.baseUrl | quote }}}
- {name: DEPLOYMENT_PROCESSES, value: {{ include "gateway.processes" . | quote }}}
{{- range $name, $value := .Values.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- /* A pod's folder ends with the pod. A journal of a few pods would let in what the others have ended. */}}
{{- if not (hasKey .Values.env "REVOCATION_JOURNAL") }}
- {name: REVOCATION_JOURNAL, value: "off"}
{{- end }}
- name: DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.stores }}, key: DATABASE_URL}}
- name: REDIS_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.stores }}, key: REDIS_URL}}
- name: QUEUE_REDIS_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.stores }}, key: QUEUE_REDIS_URL, optional: true}}
{{- end }}

{{/* What every pod has in common, under `spec`: (list $ resources) */}}
{{- define "gateway.pod" -}}
{{- $root := . -}}
serviceAccountName: {{ include "gateway.serviceAccount" $root }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
volumes:
  - {name: tmp, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
  - {name: data, emptyDir: {sizeLimit: 256Mi}}
{{- end }}

{{- define "gateway.container" -}}
image: {{ include "gateway.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: data, mountPath: /data}
{{- end }}

{{/* Where a pod's processes count, and the container that answers Prometheus for them. */}}
{{- define "gateway.metricsEnv" -}}
- {name: METRICS_ADDRESS, value: "0.0.0.0:{{ .Values.metrics.port }}"}
{{- end }}

{{- define "gateway.metricsContainer" -}}
- name: metrics
  {{- include "gateway.container" . | nindent 2 }}
  args: [metrics]
  ports: [{name: metrics, containerPort: {{ .Values.metrics.port }}}]
  env:
    - {name: GATEWAY_ROLE, value: helper}
    # An address, and no secret: whether the identity provider answers is one of the figures.
    - name: OIDC_OP_DISCOVERY_URL
      valueFrom: {secretKeyRef: {name: {{ .Values.secrets.service }}, key: OIDC_OP_DISCOVERY_URL, optional: true}}
    {{- include "gateway.env" . | nindent 4 }}
    {{- include "gateway.metricsEnv" . | nindent 4 }}
  resources: {{- toYaml .Values.metrics.resources | nindent 4 }}
{{- end }}

{{/* The pods of a worker: (list $ role values arguments) */}}
{{- define "gateway.workerDeployment" -}}
{{- $root := index . 0 -}}{{- $role := index . 1 -}}{{- $values := index . 2 -}}{{- $arguments := index . 3 -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "gateway.fullname" $root }}-{{ $role }}
  labels: {{- include "gateway.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $role }}
spec:
  replicas: {{ $values.replicas }}
  selector: {matchLabels: {{ include "gateway.selector" (list $root $role) | fromYaml | toJson }}}
  template:
    metadata:
      labels: {{- include "gateway.selector" (list $root $role) | nindent 8 }}
        {{- with $root.Values.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- with $root.Values.podAnnotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "gateway.pod" $root | nindent 6 }}
      # A task that is cut off is taken again by another worker; most end well within this time.
      terminationGracePeriodSeconds: 60
      containers:
        - name: {{ $role }}
          {{- include "gateway.container" $root | nindent 10 }}
          args: {{ toJson $arguments }}
          envFrom: [{secretRef: {name: {{ $root.Values.secrets.service }}}}]
          env:
            {{- include "gateway.env" $root | nindent 12 }}
            {{- if eq $role "worker" }}
            - {name: WORKER_PROCESSES, value: {{ $values.processes | quote }}}
            {{- end }}
            {{- if $root.Values.metrics.enabled }}
            {{- include "gateway.metricsEnv" $root | nindent 12 }}
            {{- end }}
          # The worker answers a ping over the queue: it is asked seldom, because each ping starts a program.
          livenessProbe:
            exec: {command: [python, -m, gateway.container.entrypoint, health, {{ $role }}]}
            initialDelaySeconds: 30
            periodSeconds: 60
            timeoutSeconds: 20
            failureThreshold: 3
          resources: {{- toYaml $values.resources | nindent 12 }}
        {{- if $root.Values.metrics.enabled }}
        {{- include "gateway.metricsContainer" $root | nindent 8 }}
        {{- end }}
{{- end }}
