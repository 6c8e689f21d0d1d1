"""Where a notification would go, and why: questions, answers, and all drawings of overlays."""
