-- Applies one batch exactly once, by the contract of ratelimit/store. Integers in,
-- integers out.
-- KEYS  1 sequence · 2 window · then the counters to write · then those to read
-- ARGV  1 batch number · 2 "1" if a retry · 3 sequence TTL, ms · 4 window, ms
--       5 TTL of new counters, ms · 6 step of its spread, ms · 7 count of writes
--       then the delta of each
-- Reply number · outcome · time, s · time, µs within it · what the window key
--       holds · then per write its status and total · then per read its total
-- Outcomes 1 applied · 2 duplicate · 3 orphan · 4 bad sequence
-- Statuses 0 written · 1 poisoned · 2 refused · 3 unexpiring · 4 skipped
-- A total is -1 unless it is all digits and below 2^53.
-- The sequence key holds the last number applied and, for each write of that
-- batch that failed, " index:status". Setting it comes first and may raise: then
-- nothing was applied. After it nothing may, or half a batch would be denied.
local pcall, type, find, gsub = redis.pcall, type, string.find, string.gsub
local LIMIT, number, writes, time = 2 ^ 53, tonumber(ARGV[1]), tonumber(ARGV[7]), pcall('TIME')
local reply = {number, 1, tonumber(time[1] or 0), tonumber(time[2] or 0), -1}

local function total(value) -- of what GET or MGET answers
  if not value then return 0 end
  if type(value) ~= 'string' or not find(value, '^%d+$') then return -1 end
  value = tonumber(value)
  return value < LIMIT and value or -1
end

local function poisoned(err) -- or else refused, by the text of the error
  err = gsub(err, '^%-?ERR ', '')
  return find(err, '^%-?WRONGTYPE') or find(err, '^value is not an integer') or find(err, '^increment or decrement')
end

-- Puts the totals of KEYS first … last at every step-th place of the reply. MGET
-- answers another type as if it were missing, and fails for one forbidden key.
local function read(first, last, place, step)
  for from = first, last, 1000 do
    local to = math.min(from + 999, last)
    local values, missing = pcall('MGET', unpack(KEYS, from, to)), {}
    for i = from, to do if not values[i - from + 1] then missing[#missing + 1] = KEYS[i] end end
    local each = missing[1] and pcall('EXISTS', unpack(missing)) ~= 0
    for i = from, to do
      reply[place + (i - first) * step] = total(values[i - from + 1] or each and pcall('GET', KEYS[i]))
    end
  end
end

local held, failures = pcall('GET', KEYS[1]), {}
if type(held) == 'table' then
  if not poisoned(held.err) then return held end
  reply[2] = 4
elseif held then
  local _, _, head, rest = find(held, '^(%d+)(.*)$')
  local last = total(head or '')
  reply[2] = (last < 0 or gsub(rest, ' %d+:[123]', '') ~= '') and 4 or number <= last and 2 or 1
  for i, s in string.gmatch(number == last and rest or '', '(%d+):(%d)') do failures[tonumber(i)] = tonumber(s) end
elseif ARGV[2] == '1' and number > 1 then reply[2] = 3 end

if reply[2] == 1 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
  held = pcall('GET', KEYS[2])
  if not held then held = pcall('SET', KEYS[2], ARGV[4], 'PX', ARGV[3]).ok and ARGV[4]
  elseif total(held) == tonumber(ARGV[4]) then pcall('PEXPIRE', KEYS[2], ARGV[3]) end
  for i = 1, writes do
    local key, delta, status = KEYS[2 + i], ARGV[7 + i], 0
    local sum = pcall('INCRBY', key, delta)
    if type(sum) ~= 'number' then status = poisoned(sum.err) and 1 or 2
    elseif sum < 0 or sum >= LIMIT then status = 1
    elseif sum - delta == 0 and -- a new key
      pcall('PEXPIRE', key, ARGV[5] + ARGV[6] * ((number + i - 1) % 64)) ~= 1 then status = 3 end
    if status == 1 then sum = -1 elseif status == 2 then sum = total(pcall('GET', key)) end
    if status ~= 0 then failures[#failures + 1] = i .. ':' .. status end
    reply[4 + 2 * i], reply[5 + 2 * i] = status, sum
  end
  if failures[1] then pcall('SET', KEYS[1], ARGV[1] .. ' ' .. table.concat(failures, ' '), 'PX', ARGV[3]) end
else
  held = pcall('GET', KEYS[2])
  for i = 1, writes do reply[4 + 2 * i] = reply[2] == 2 and (failures[i] or 0) or 4 end
  read(3, 2 + writes, 7, 2)
end
reply[5] = held and total(held) or -1
read(3 + writes, #KEYS, 6 + 2 * writes, 1)
return reply
