"""How memories belong together: relations between them, what is reached over these, and how that reads in a prompt."""
