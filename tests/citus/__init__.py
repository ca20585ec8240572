"""What is asked of a running Citus cluster: `make test-citus URL=…`. Without one nothing here is collected."""
