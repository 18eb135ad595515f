package summary

import "strings"

func isAlnum(c byte) bool  { return isLetter(c) || isDigit(c) }
func isLetter(c byte) bool { return isUpper(c) || isLower(c) }
func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool  { return c >= 'a' && c <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isSpace(c byte) bool  { return strings.IndexByte(" \t\n\v\f\r", c) >= 0 }
