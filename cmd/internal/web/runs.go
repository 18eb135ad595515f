package web

var runPages []page
