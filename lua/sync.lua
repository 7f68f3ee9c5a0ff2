-- Applies one batch exactly once, by the contract of ratelimit/store. Integers in,
-- integers out. A batch of number 0 is a look: it writes nothing.
--
-- KEYS  1    sequence
--       2    window
--       3 …  counters to write, those to read, the previous counters of special writes
-- ARGV  1    batch number
--       2    nonce, compared as text
--       3    last number acknowledged under this sequence, 0 if none
--       4    "1" if an attempt before may have been applied
--       5 6  TTL of the sequence and window keys · window, ms
--       7 8  TTL of new counters · step of its spread, ms
--      9 10  count of writes · count of reads
--      11 …  the delta of each write; then of each special one, which takes (its delta is
--            negative) or asks for amounts: its index, from 1 · weight of the previous
--            counter, 2^-20 · limit · place of that counter in KEYS, 0 if none · count of
--            amounts · amounts
-- Reply      number · outcome · time, s · time, µs within it · what the window key
--            holds · the total of each write · of each read · notes, of three each
-- Outcomes   1 applied · 2 duplicate · 3 stranger · 4 orphan · 5 bad sequence · 6 looked
-- Notes      index of a write, 0 for the batch · code · value
-- Codes      1 poisoned · 2 refused · 3 unexpiring · 4 saturated · 5 took only value
--            6 forgotten · 7 not granted: 2^32 × word + its bits, 32 amounts to a word
-- A total is -1 unless it is all digits, and 2^53 - 1 at most. The sequence key holds
-- "number nonce" of the last batch applied and each note as " index:code:value". Setting
-- it comes first and may raise: then nothing was applied. After it nothing may raise.
local pcall, type, find, gsub, format = redis.pcall, type, string.find, string.gsub, string.format
local floor, min, MOST = math.floor, math.min, 2 ^ 53 - 1
local number, acked = tonumber(ARGV[1]), tonumber(ARGV[3])
local writes, reads = tonumber(ARGV[9]), tonumber(ARGV[10])
local time, notes, special, place = pcall('TIME'), {}, {}, 11 + writes
local reply = {number, 1, tonumber(time[1] or 0), tonumber(time[2] or 0), -1}
while ARGV[place] do
  special[tonumber(ARGV[place])] = place
  place = place + 5 + ARGV[place + 4]
end

local function note(index, code, value)
  local n = #notes
  notes[n + 1], notes[n + 2], notes[n + 3] = index, code, value
end

local function total(value) -- of what GET or MGET answers
  if not value then return 0 end
  if type(value) ~= 'string' or not find(value, '^%d+$') then return -1 end
  return min(tonumber(value) or MOST, MOST)
end

local function poisoned(err) -- or else refused, by the text of the error
  err = gsub(err, '^%-?ERR ', '')
  return find(err, '^%-?WRONGTYPE') or find(err, '^value is not an integer') or find(err, '^increment or decrement')
end

-- Puts totals into the reply. MGET answers another type as if it were missing, and fails
-- for one forbidden key.
local function read(first, last)
  for from = first, last, 1000 do
    local to = min(from + 999, last)
    local values, missing = pcall('MGET', unpack(KEYS, from, to)), {}
    for i = from, to do if not values[i - from + 1] then missing[#missing + 1] = KEYS[i] end end
    local each = missing[1] and pcall('EXISTS', unpack(missing)) ~= 0
    for i = from, to do reply[3 + i] = total(values[i - from + 1] or each and pcall('GET', KEYS[i])) end
  end
end

local function judge(held) -- returns outcome, notes to repeat, whether much was forgotten
  if number == 0 then return 6, '', false end
  if not held then return ARGV[4] == '1' and number > 1 and 4 or 1, '', acked > 0 end
  local _, _, last, nonce, rest = find(type(held) == 'string' and held or '', '^(%d+) (%d+)(.*)$')
  if not last or gsub(rest, ' %d+:[1-7]:%d+', '') ~= '' then return 5, '', false end
  last = total(last)
  if number > last then return 1, '', acked > last end
  return number == last and nonce == ARGV[2] and 2 or 3, rest, false
end

local function claim() -- the window, and answers what its key holds
  local held = pcall('GET', KEYS[2])
  if not held then return pcall('SET', KEYS[2], ARGV[6], 'PX', ARGV[5]).ok and ARGV[6] end
  if total(held) == tonumber(ARGV[6]) then pcall('PEXPIRE', KEYS[2], ARGV[5]) end
  return held
end

local function room(at) -- for the counter of a special write; below 0 if the previous one holds no count
  local limit, key = tonumber(ARGV[at + 2]), KEYS[tonumber(ARGV[at + 3])]
  if not key then return limit end
  local previous = total(pcall('GET', key))
  local low, weight = previous % 2 ^ 20, tonumber(ARGV[at + 1]) -- no product may exceed 2^53
  return previous < 0 and -1 or limit - (previous - low) / 2 ^ 20 * weight - math.ceil(low * weight / 2 ^ 20)
end

local function failed(i, key, answer) -- notes why, and returns the total
  local refused = type(answer) == 'table' and not poisoned(answer.err)
  local held = total(pcall('GET', key))
  note(i, refused and 2 or held == MOST and 4 or 1, 0)
  return (refused or held == MOST) and held or -1
end

local function added(i, key, delta, sum) -- returns the total, and whether it failed
  if type(sum) ~= 'number' or sum < 0 then return failed(i, key, sum), true end
  if sum - delta == 0 and -- a new key
    pcall('PEXPIRE', key, ARGV[7] + ARGV[8] * ((number + i - 1) % 64)) ~= 1 then note(i, 3, 0) end
  return sum > MOST and MOST or sum
end

local function bargain(i, at) -- over a special write, and returns the total
  local key, change, left, count, all = KEYS[2 + i], tonumber(ARGV[10 + i]), room(at), tonumber(ARGV[at + 4]), 0
  for j = 1, count do all = all + ARGV[at + 4 + j] end
  all = all + change
  if count > 0 and change >= 0 and all <= left then -- else a new key would have to go again
    local sum = pcall('INCRBY', key, all)
    if type(sum) == 'number' and sum >= all and sum <= left then return (added(i, key, all, sum)) end
    if type(sum) == 'number' then pcall('INCRBY', key, -all) end
  end
  local value = pcall('GET', key)
  local sum, failing, words = total(value), false, {}
  if sum < 0 then return failed(i, key, value) end
  local taken = change < -sum and sum
  if taken then change = -taken end
  for j = 0, count - 1 do
    local amount, word = tonumber(ARGV[at + 5 + j]), floor(j / 32)
    if sum + change + amount <= left then change = change + amount
    else words[word] = (words[word] or word * 2 ^ 32) + 2 ^ (j % 32) end
  end
  if change ~= 0 then sum, failing = added(i, key, change, pcall('INCRBY', key, format('%.0f', change))) end
  if failing then return sum end
  if taken then note(i, 5, taken) end
  for word = 0, floor((count - 1) / 32) do if words[word] then note(i, 7, words[word]) end end
  return sum
end

local held = number > 0 and pcall('GET', KEYS[1])
if type(held) == 'table' and not poisoned(held.err) then return held end
local outcome, told, forgotten = judge(held)
reply[2] = outcome
if forgotten then note(0, 6, 0) end
if outcome == 1 then
  redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[5])
  held = claim()
  for i = 1, writes do
    local key, delta, at = KEYS[2 + i], ARGV[10 + i], special[i]
    local sum = at and bargain(i, at) or pcall('INCRBY', key, delta)
    local usual = at or type(sum) == 'number' and sum - delta > 0 and sum <= MOST
    reply[5 + i] = usual and sum or added(i, key, delta, sum)
  end
  if notes[1] then
    local text = {ARGV[1] .. ' ' .. ARGV[2]}
    for n = 1, #notes, 3 do text[#text + 1] = format('%d:%d:%.0f', notes[n], notes[n + 1], notes[n + 2]) end
    pcall('SET', KEYS[1], table.concat(text, ' '), 'PX', ARGV[5])
  end
else
  held = pcall('GET', KEYS[2])
  for i, code, value in string.gmatch(outcome == 2 and told or '', '(%d+):(%d):(%d+)') do
    if total(i) <= writes then note(total(i), tonumber(code), total(value)) end
  end
  read(3, 2 + writes)
end
reply[5] = held and total(held) or -1
read(3 + writes, 2 + writes + reads)
for i = 1, #notes do reply[5 + writes + reads + i] = notes[i] end
return reply
