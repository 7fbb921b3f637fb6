"""What the adversary knows before anything is released, and what he believes after each release."""
