"""What Kubernetes tells: small copies of its objects, kept current by list and watch."""
