"""What a trained PyTorch model is saved as."""
