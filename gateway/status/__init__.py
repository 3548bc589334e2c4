"""The status of the deployment: its parts, their history, and the incidents that staff post."""
