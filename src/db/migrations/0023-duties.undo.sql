drop table duties, installation;
