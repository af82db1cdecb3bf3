"""What a night takes and costs, before it starts and afterwards."""
