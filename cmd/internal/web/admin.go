package web

var adminPages []page
