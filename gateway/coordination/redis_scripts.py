"""`window.py` in Lua: a script counts and reads the epochs in one atomic step, by the clock of Redis."""

# KEYS: the window, the epochs, and their earlier names or none. ARGV: limit, window in ms, units, number of epochs, and
# for a log a unique member. All keys are in one slot of a cluster, earlier names excepted.
# Returns: allowed (0 or 1), remaining, milliseconds to wait, then the epochs.
ADMIT = """
local limit, window_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local units = math.min(tonumber(ARGV[3]), limit)
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local allowed, remaining, retry = 0, 0, 0
if ARGV[5] then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window_ms)
  local count = redis.call('ZCARD', KEYS[1])
  local excess = count + units - limit
  if excess <= 0 then
    for unit = 1, units do redis.call('ZADD', KEYS[1], now, ARGV[5] .. unit) end
    redis.call('PEXPIRE', KEYS[1], window_ms)
    allowed, remaining = 1, -excess
  else
    local last = redis.call('ZRANGE', KEYS[1], excess - 1, excess - 1, 'WITHSCORES')
    remaining, retry = math.max(0, limit - count), math.max(1, tonumber(last[2]) - (now - window_ms))
  end
else
  local slices = 60
  local slots = slices + 1
  local width = math.floor(window_ms / slices)
  local index = math.floor(now / width)
  local head = redis.call('HMGET', KEYS[1], 'last', 'total')
  local last, total = tonumber(head[1]), tonumber(head[2])
  if not last or index - last >= slots then
    redis.call('DEL', KEYS[1])
    last, total = index, 0
  end
  for slot = last + 1, index do
    local count = tonumber(redis.call('HGET', KEYS[1], slot % slots))
    if count then
      total = total - count
      redis.call('HDEL', KEYS[1], slot % slots)
    end
  end
  if index > last then last = index end
  local excess = total + units - limit
  if excess <= 0 then
    redis.call('HINCRBY', KEYS[1], index % slots, units)
    total = total + units
    allowed, remaining = 1, -excess
  else
    local gone = index
    for slot = index - slices, index do
      excess = excess - (tonumber(redis.call('HGET', KEYS[1], slot % slots)) or 0)
      if excess <= 0 then gone = slot break end
    end
    remaining, retry = math.max(0, limit - total), math.max(1, (gone + slots) * width - now)
  end
  redis.call('HSET', KEYS[1], 'last', last, 'total', total)
  redis.call('PEXPIRE', KEYS[1], window_ms + 2 * width)
end
local answer = {allowed, remaining, retry}
local epochs = tonumber(ARGV[4])
for i = 2, epochs + 1 do
  local value = redis.call('GET', KEYS[i]) or ''
  if value ~= '' and KEYS[i + epochs] then value = value .. (redis.call('GET', KEYS[i + epochs]) or '') end
  answer[i + 2] = value
end
return answer
"""

# `window.look`: reads only. ARGV as above; returns allowed, remaining, milliseconds to wait.
PEEK = """
local limit, window_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local used, retry = 0, 0
if ARGV[5] then
  local edge = now - window_ms
  local inside = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. edge, '+inf', 'WITHSCORES')
  used = #inside / 2
  if used >= limit then retry = math.max(1, tonumber(inside[2 * (used - limit + 1)]) - edge) end
else
  local slices = 60
  local slots = slices + 1
  local width = math.floor(window_ms / slices)
  local index = math.floor(now / width)
  local last = tonumber(redis.call('HGET', KEYS[1], 'last')) or index
  local oldest, counts = math.max(index, last) - slices, {}
  for slot = oldest, last do
    counts[slot] = tonumber(redis.call('HGET', KEYS[1], slot % slots)) or 0
    used = used + counts[slot]
  end
  local excess, gone = used + 1 - limit, oldest
  if excess > 0 then
    excess = excess - counts[gone]
    while excess > 0 do
      gone = gone + 1
      excess = excess - counts[gone]
    end
    retry = math.max(1, (gone + slots) * width - now)
  end
end
local left = math.max(0, limit - used)
return {left > 0 and 1 or 0, left, retry}
"""
