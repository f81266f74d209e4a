module goreference
go 1.22
