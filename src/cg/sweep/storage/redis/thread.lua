-- What is done on the server in one step: the scripts that keep a thread's keys consistent whoever writes beside us.
--
-- Every key is `NAMESPACE KIND : ID`, ID the SHA-256 of the thread's name; no name from a request is part of a key. Kinds:
--
--     t  hash    the thread: d, b (versions of decisions and branches), decl, ratio, usages, misses
--     b  hash    branch -> where it stands          r  hash  identity -> removal that is replayed
--     e  hash    identity -> how it ended           w  hash  identity -> verdict that waits
--     x  set     SHA-256 of what was expanded       p  hash  key -> who made an original, kept beyond its content
--     c  hash    key -> content                     s  zset  key by the moment its content was stored or used
--     k  hash    claim -> until                     n  hash  family and name -> amount
--     a  list    the ledger's rows
--
-- and of all threads together: threads (zset, ID by last request), counts (hash, what each ID holds), held (hash, the sums
-- of these), totals (hash, the sums of n), asks (list of IDs, a row each, oldest first), seq, swept, secret.
--
-- Each key of a thread is given the same lifetime by each write, so that a server nobody writes to any more ends up empty.
--
-- Called with one key, the namespace, and in ARGV: the thread's ID, its lifetime in ms, what the command takes, and the
-- command's name. A comment over each command says what it takes and gives.

-- what `counts` and `held` have a number of; cg.sweep.storage.redis.scripts names the same
local COUNTS = {'payload_bytes', 'branches', 'removals', 'ended', 'pending', 'payloads', 'kept', 'asks'}
local UNDATED = '-1e300'  -- when a thread was used that no request has dated yet
local ns, id, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2])
local call = redis.call
local command = table.remove(ARGV)
local KINDS = {'t', 'b', 'r', 'e', 'w', 'x', 'p', 'c', 's', 'k', 'n', 'a'}
local function key(kind, of) return ns .. kind .. ':' .. (of or id) end
local function integer(n) return string.format('%.0f', n) end

-- Let a thread be known, under versions that nobody has seen if it is new.
local function know(version)
  call('ZADD', ns .. 'threads', 'NX', UNDATED, id)
  call('HSETNX', key('t'), 'd', version)
  call('HSETNX', key('t'), 'b', version)
end

local function used(now) call('ZADD', ns .. 'threads', 'GT', now, id) end

-- Give the keys that were just written the end that the thread's others have; all get a later one every half a day, so
-- that not every write costs twelve more, here and in the log.
local function bound(...)
  local now, last = call('TIME')[1] * 1000, tonumber(call('HGET', key('t'), 'end') or '0')
  if last < now + ttl - 43200000 then
    last = now + ttl
    call('HSET', key('t'), 'end', integer(last))
    for _, kind in ipairs(KINDS) do call('PEXPIREAT', key(kind), integer(last)) end
    return
  end
  for _, kind in ipairs({...}) do
    if call('PTTL', key(kind)) == -1 then call('PEXPIREAT', key(kind), integer(last)) end
  end
end

local function measured()
  local size = 0
  for _, name in ipairs(call('HKEYS', key('c'))) do size = size + math.max(call('HSTRLEN', key('c'), name) - 1, 0) end
  return size
end

-- Bring the sums over all threads up to what this one holds now, its payloads having grown by so many bytes; they are
-- measured where that is not known.
local function account(grown, of)
  of = of or id
  local was, n = {}, 0
  for number in string.gmatch(call('HGET', ns .. 'counts', of) or '', '%-?%d+') do
    n = n + 1
    was[n] = tonumber(number)
  end
  local now = {
    grown and (was[1] or 0) + grown or measured(), call('HLEN', key('b', of)), call('HLEN', key('r', of)), call('HLEN', key('e', of)),
    call('HLEN', key('w', of)), call('HLEN', key('c', of)), call('HLEN', key('p', of)), call('LLEN', key('a', of))
  }
  local texts, any, changed = {}, false, false
  for i, name in ipairs(COUNTS) do
    local change = now[i] - (was[i] or 0)
    changed = changed or change ~= 0
    if change ~= 0 and call('HINCRBY', ns .. 'held', name, integer(change)) == 0 then call('HDEL', ns .. 'held', name) end
    texts[i] = integer(now[i])
    any = any or now[i] ~= 0
  end
  if not changed then return end
  if any then call('HSET', ns .. 'counts', of, table.concat(texts, ' ')) else call('HDEL', ns .. 'counts', of) end
end

local function grown_by(amount, field)
  if math.abs(tonumber(call('HINCRBYFLOAT', ns .. 'totals', field, amount))) < 1e-9 then
    call('HDEL', ns .. 'totals', field)
  end
end

local function erase()
  local totals = call('HGETALL', key('n'))
  for i = 1, #totals, 2 do
    local amount = totals[i + 1]
    grown_by(string.sub(amount, 1, 1) == '-' and string.sub(amount, 2) or '-' .. amount, totals[i])
  end
  local size = tonumber(string.match(call('HGET', ns .. 'counts', id) or '0', '^%-?%d+'))
  for _, kind in ipairs(KINDS) do call('UNLINK', key(kind)) end
  account(-size)
  call('ZREM', ns .. 'threads', id)
  call('LREM', ns .. 'asks', 0, id)
end

-- Whether a branch has still this clock and this body; no branch always has.
local function stands(branch, clock, body)
  if branch == '' then return true end
  local at, of = string.match(call('HGET', key('b'), branch) or '', '^%[([^,]*), "(%x*)"')
  return at == clock and of == body
end

local function sha_of(meta) return string.match(meta, '^%d+ (%x+)') end

local commands = {}

-- (id, ttl_ms, decisions' version known, branches' version known) ->
--   time, [versions, declaration, ratio, usages, misses], branches, [removals, ended, pending, expanded, missing]
function commands.load()
  local row = call('HMGET', key('t'), 'd', 'b', 'decl', 'ratio', 'usages', 'misses')
  local time = call('TIME')
  if not row[1] then return {time} end
  local branches, decisions = false, false
  if row[2] ~= ARGV[4] then branches = call('HGETALL', key('b')) end
  if row[1] ~= ARGV[3] then
    local removals, missing = call('HGETALL', key('r')), {}
    for i = 1, #removals, 2 do
      local sha = string.sub(removals[i], 1, 64)
      local name = string.sub(sha, 1, 16)
      local meta = call('HGET', key('p'), name)
      if not meta or sha_of(meta) ~= sha or call('HEXISTS', key('c'), name) == 0 then
        missing[#missing + 1] = removals[i]
      end
    end
    decisions = {removals, call('HGETALL', key('e')), call('HGETALL', key('w')), call('SMEMBERS', key('x')), missing}
  end
  return {time, row, branches, decisions}
end

-- (id, ttl_ms, version, now, max_bytes, is_forced, [key, sha, meta, content]...) -> [1 stored, 0 refused, 2 no room]...
function commands.put()
  local now, room = ARGV[4], tonumber(ARGV[5]) - tonumber(call('HGET', ns .. 'held', 'payload_bytes') or '0')
  know(ARGV[3])
  used(now)
  local outcomes, grown = {}, 0
  for i = 7, #ARGV, 4 do
    local name, sha, meta, content = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
    local meta_before, held = call('HGET', key('p'), name), call('HSTRLEN', key('c'), name)
    local more = #content - math.max(held, 1)  -- the first byte says only how the rest is packed
    if meta_before and sha_of(meta_before) ~= sha then
      outcomes[#outcomes + 1] = 0
    elseif held > 0 and ARGV[6] == '0' then
      call('ZADD', key('s'), 'GT', now, name)
      outcomes[#outcomes + 1] = 1
    elseif more > room then
      outcomes[#outcomes + 1] = 2
    else
      call('HSET', key('c'), name, content)
      call('HSET', key('p'), name, call('INCR', ns .. 'seq') .. ' ' .. meta)
      call('ZADD', key('s'), 'GT', now, name)
      grown, room = grown + more, room - more
      outcomes[#outcomes + 1] = 1
      call('HSET', key('t'), 'd', ARGV[3])  -- what was missing may be back
    end
  end
  if ARGV[6] == '0' then account(grown) else account() end  -- what was damaged had another length
  bound('p', 'c', 's')
  return outcomes
end

-- (id, ttl_ms, key) -> [who made it, content]
function commands.fetch()
  return {call('HGET', key('p'), ARGV[3]), call('HGET', key('c'), ARGV[3])}
end

-- (id, ttl_ms, version, [identity, key, sha, removal]...) -> [the removal that stands, or nil]...
function commands.freeze()
  local stand, any = {}, false
  for i = 4, #ARGV, 4 do
    local identity, name, sha, removal = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
    local standing = call('HGET', key('r'), identity)
    if not standing and call('HEXISTS', key('e'), identity) == 0 then
      local meta = call('HGET', key('p'), name)
      local is_stored = meta and sha_of(meta) == sha and call('HEXISTS', key('c'), name) == 1
      if is_stored and call('SISMEMBER', key('x'), sha) == 0 then
        call('HSET', key('r'), identity, removal)
        call('HDEL', key('w'), identity)
        standing, any = removal, true
      end
    end
    stand[#stand + 1] = standing or false
  end
  if any then
    know(ARGV[3])
    call('HSET', key('t'), 'd', ARGV[3])
    account(0)
    bound('r')
  end
  return stand
end

-- (id, ttl_ms, version, identity, how) -> 1 if this call ended it
function commands.end_removal()
  if call('HDEL', key('r'), ARGV[4]) == 0 then return 0 end
  call('HSET', key('e'), ARGV[4], ARGV[5])
  know(ARGV[3])
  call('HSET', key('t'), 'd', ARGV[3])
  account(0)
  bound('e')
  return 1
end

-- (id, ttl_ms, version, sha)
function commands.mark()
  know(ARGV[3])
  call('SADD', key('x'), ARGV[4])
  call('HSET', key('t'), 'd', ARGV[3])
  bound('x')
end

-- (id, ttl_ms, version, [identity, verdict]...)
function commands.pend()
  know(ARGV[3])
  for i = 4, #ARGV, 2 do
    if call('HEXISTS', key('r'), ARGV[i]) == 0 then call('HSETNX', key('w'), ARGV[i], ARGV[i + 1]) end
  end
  call('HSET', key('t'), 'd', ARGV[3])
  account(0)
  bound('w')
end

-- (id, ttl_ms, version, identity...)
function commands.unpend()
  know(ARGV[3])
  for i = 4, #ARGV do call('HDEL', key('w'), ARGV[i]) end
  call('HSET', key('t'), 'd', ARGV[3])
  account(0)
  bound()
end

-- (id, ttl_ms, version, declaration) -> the declaration that stands
function commands.declare()
  know(ARGV[3])
  call('HSETNX', key('t'), 'decl', ARGV[4])
  bound()
  return call('HGET', key('t'), 'decl')
end

-- (id, ttl_ms, version, branch, where it stands, clock, most, seen branch or '', clock, body, [name, amount]...) ->
--   [the version before, branches that went...], or nil if the branch has moved
function commands.touch()
  if not stands(ARGV[8], ARGV[9], ARGV[10]) then return false end
  know(ARGV[3])
  used(ARGV[6])
  local answer = {call('HGET', key('t'), 'b')}
  call('HSET', key('b'), ARGV[4], ARGV[5])
  while call('HLEN', key('b')) > tonumber(ARGV[7]) do
    local all, oldest, at = call('HGETALL', key('b')), nil, nil
    for i = 1, #all, 2 do
      local clock = tonumber(string.match(all[i + 1], '^%[([^,]*),'))
      if not oldest or clock < at or (clock == at and all[i] < oldest) then oldest, at = all[i], clock end
    end
    call('HDEL', key('b'), oldest)
    answer[#answer + 1] = oldest
  end
  call('HSET', key('t'), 'b', ARGV[3])
  account(0)
  for i = 11, #ARGV, 2 do
    call('HINCRBYFLOAT', key('n'), ARGV[i], ARGV[i + 1])
    grown_by(ARGV[i + 1], ARGV[i])
  end
  bound('b', 'n')
  return answer
end

-- (id, ttl_ms, version, misses, is_learning, ratio seen, usages seen, ratio, usages) -> nil, or what is seen now
function commands.learn()
  local seen = call('HMGET', key('t'), 'ratio', 'usages')
  if ARGV[5] == '1' and ((seen[1] or '') ~= ARGV[6] or (seen[2] or '') ~= ARGV[7]) then
    return {seen[1] or '', seen[2] or ''}
  end
  know(ARGV[3])
  if ARGV[5] == '1' then call('HSET', key('t'), 'ratio', ARGV[8], 'usages', ARGV[9]) end
  if ARGV[4] ~= '0' then call('HINCRBY', key('t'), 'misses', ARGV[4]) end
  bound()
  return false
end

-- (id, ttl_ms, version, claim, until, branch or '', clock, body) -> 1 for the first, while the branch stands like this
function commands.claim()
  if not stands(ARGV[6], ARGV[7], ARGV[8]) then return 0 end
  know(ARGV[3])
  local is_first = call('HSETNX', key('k'), ARGV[4], ARGV[5])
  bound('k')
  return is_first
end

-- (id, ttl_ms, version, row, most)
function commands.book()
  know(ARGV[3])
  call('RPUSH', key('a'), call('INCR', ns .. 'seq') .. ' ' .. ARGV[4])
  call('RPUSH', ns .. 'asks', id)
  account(0)
  if call('LLEN', ns .. 'asks') > tonumber(ARGV[5]) then
    local of = call('LPOP', ns .. 'asks')
    call('LPOP', key('a', of))
    account(0, of)
  end
  bound('a')
end

-- (id, ttl_ms, version, [family and name, amount]...)
function commands.count()
  know(ARGV[3])
  for i = 4, #ARGV, 2 do
    call('HINCRBYFLOAT', key('n'), ARGV[i], ARGV[i + 1])
    grown_by(ARGV[i + 1], ARGV[i])
  end
  bound('n')
end

-- (id, ttl_ms)
function commands.erase()
  erase()
end

-- (id, ttl_ms, version, now, originals stored before then are old, threads used before then are old)
function commands.age()
  local now, before = tonumber(ARGV[4]), tonumber(ARGV[5])
  local at = tonumber(call('ZSCORE', ns .. 'threads', id) or ARGV[4])
  if at == tonumber(UNDATED) then  -- a thread that no request has dated starts to age now
    at = now
    used(ARGV[4])
  end
  if call('EXISTS', key('t')) == 0 or at <= tonumber(ARGV[6]) then return erase() end
  local claims = call('HGETALL', key('k'))
  for i = 1, #claims, 2 do
    if tonumber(claims[i + 1]) <= now then call('HDEL', key('k'), claims[i]) end
  end
  local old = call('ZRANGEBYSCORE', key('s'), '-inf', ARGV[5])
  if #old == 0 then return end
  local replayed = {}
  if at > before then
    for _, identity in ipairs(call('HKEYS', key('r'))) do replayed[string.sub(identity, 1, 64)] = true end
  end
  for _, name in ipairs(old) do
    if not replayed[sha_of(call('HGET', key('p'), name) or '')] then
      call('HDEL', key('c'), name)
      call('ZREM', key('s'), name)
      call('HSET', key('t'), 'd', ARGV[3])
    end
  end
  account()
end

return commands[command]()
