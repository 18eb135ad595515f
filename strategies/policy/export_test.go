package policy

var With, Table = with, table
