"""What is asked of the operating system: `memory`, `signals`, and the folder that workers share (`shared_folder`)."""
