-- What Redis gives a script beyond Lua 5.1.
std = "lua51"
read_globals = { "redis", "KEYS", "ARGV" }
max_line_length = 120
