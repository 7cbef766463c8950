"""What does this machine share? Join a team, offer items, and take them back."""
