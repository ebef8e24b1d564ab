"""What people see: tables, figures, the headline and the page that holds them all."""
