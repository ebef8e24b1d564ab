"""What people see: tables, figures, the headline, the cost ledger and the page that holds them all."""
