{{- define "soroi.configuration" -}}
{{- range list "apiVersion" "kind" "http" "leaderElection" "webhooks" "identity" }}
{{- if hasKey $.Values.configuration . }}
{{- fail (printf "configuration.%s: follows from the chart; leave it out" .) }}
{{- end }}
{{- end }}
{{- $fixed := dict "http" (dict "bindAddress" "0.0.0.0:8081") }}
{{- $_ := set $fixed "leaderElection" (dict "namespace" .Release.Namespace) }}
{{- $_ := set $fixed "webhooks" dict -}}
apiVersion: soroi.dev/v1alpha1
kind: Configuration
{{ toYaml (merge $fixed .Values.configuration) }}
{{- end }}
