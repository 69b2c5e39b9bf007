-- tcpwin in Wireshark: fields with tcpwin's results for each packet, from an index by `tcpwin wireshark index`.
--
-- `tcpwin wireshark install` writes this file where Wireshark and tshark look for plugins. It reads an index block by
-- block, rejects whatever does not match the capture, and never writes a file.

local COMMAND = "@COMMAND@"
-- Files in this folder are named after the time of a capture's first packet, and contain the path of its index.
local KNOWN = "@KNOWN@"

local MAGIC, VERSION = "tcpwin-index ", "1\n\0"
local HEADER_BYTES, FRAME_BYTES, CONNECTION_BYTES, BLOCK = 40, 28, 32, 1024
local ABSENT, NO_NAME = 4294967295, 255
local MOST_NAMES_BYTES, MOST_BLOCKS = 16777216, 64
local HOW = "tcpwin wireshark index CAPTURE"
local AGAIN = ". Write it again: " .. HOW

local tcpwin = Proto("tcpwin", "tcpwin")
local field = {
    connection = ProtoField.uint32("tcpwin.connection", "Connection", base.DEC, nil, 0, "Connection number in tcpwin"),
    limit = ProtoField.string("tcpwin.limit", "Limit", base.UNICODE, "What limited the connection"),
    second_limit = ProtoField.string("tcpwin.second_limit", "Second limit", base.UNICODE, "Another limit of similar size"),
    share = ProtoField.double("tcpwin.share", "Share", base.NONE, "The limit's share of the connection's duration"),
    cost = ProtoField.relative_time("tcpwin.cost", "Cost", base.NONE, "Time that the limit cost"),
    confidence = ProtoField.string("tcpwin.confidence", "Confidence", base.UNICODE, "certain, likely or possible"),
    owner = ProtoField.string("tcpwin.owner", "Owner", base.UNICODE, "Who can change the limit"),
    verdict = ProtoField.string("tcpwin.verdict", "Verdict", base.UNICODE, "What limited the connection, in words"),
    fix = ProtoField.string("tcpwin.fix", "Fix", base.UNICODE, "What to change"),
    direction = ProtoField.string("tcpwin.direction", "Direction", base.UNICODE, "a_to_b or b_to_a"),
    flight = ProtoField.uint32("tcpwin.flight", "Bytes in flight", base.DEC, nil, 0, "Bytes in flight from this packet's sender"),
    window = ProtoField.uint32("tcpwin.window", "Receive window", base.DEC, nil, 0, "Window that this packet offers, in bytes"),
    rtt = ProtoField.relative_time("tcpwin.rtt", "Round trip", base.NONE, "Round trip of the data that this packet acknowledges"),
    cause = ProtoField.string("tcpwin.cause", "Cause", base.UNICODE, "Why the packet was retransmitted or late"),
    event = ProtoField.string("tcpwin.event", "Event", base.UNICODE, "Event at this packet"),
    finding = ProtoField.string("tcpwin.finding", "Finding", base.UNICODE, "Rule whose finding this packet proves"),
    problem = ProtoField.string("tcpwin.problem", "Problem", base.UNICODE, "Why there are no results for this capture"),
}
tcpwin.fields = field
tcpwin.prefs.index = Pref.string("Index", "", "Index of the capture; empty: the last one written for it on this machine")

local packet_time = Field.new("frame.time_epoch")

local index, is_looked_for

local function checksum(data)
    local sum, at = 0, 1
    while at <= #data do
        local count = math.min(64, math.floor((#data - at + 1) / 4))
        if count == 0 then
            return nil
        end
        local words = { Struct.unpack("<" .. string.rep("I4", count), data, at) }
        for place = 1, count do
            sum = sum + words[place]
        end
        at = at + 4 * count
    end
    return sum % 4294967296
end

local function read_at(file, offset, size)
    if file:seek("set", offset) == nil then
        return nil
    end
    local data = size == 0 and "" or file:read(size)
    if data == nil or #data ~= size then
        return nil
    end
    return data
end

local function names_of(data)
    local lists = {}
    for key, values in data:gmatch("(%w+)\t([^\n]*)\n") do
        local list, count = {}, 0
        for value in (values .. "\t"):gmatch("([^\t]*)\t") do
            list[count] = value
            count = count + 1
        end
        lists[key] = list
    end
    return lists
end

local function open_index(path)
    local file = io.open(path, "rb")
    if file == nil then
        return nil, "there is no index " .. path .. ". Write it: " .. HOW
    end
    local function refuse(why)
        file:close()
        return nil, path .. " " .. why .. AGAIN
    end
    local header = read_at(file, 0, HEADER_BYTES)
    if header == nil or header:sub(1, #MAGIC) ~= MAGIC then
        return refuse("is not a tcpwin index")
    end
    if header:sub(#MAGIC + 1, 16) ~= VERSION then
        return refuse("is an index of another version of tcpwin")
    end
    local frames, connections, names_bytes, texts_bytes, names_sum, sum = Struct.unpack("<I4I4I4I4I4I4", header, 17)
    if checksum(header:sub(1, HEADER_BYTES - 4)) ~= sum or names_bytes > MOST_NAMES_BYTES then
        return refuse("is damaged")
    end
    local connections_at = HEADER_BYTES + names_bytes
    local texts_at = connections_at + math.ceil(connections / BLOCK) * (BLOCK * CONNECTION_BYTES + 4)
    local frames_at = texts_at + texts_bytes
    local names = read_at(file, HEADER_BYTES, names_bytes)
    local size = frames_at + math.ceil(frames / BLOCK) * (BLOCK * FRAME_BYTES + 4)
    if names == nil or checksum(names) ~= names_sum or file:seek("end") ~= size then
        return refuse("is damaged")
    end
    local lists = names_of(names)
    for _, key in ipairs({ "limits", "confidences", "owners", "causes", "events", "findings" }) do
        if lists[key] == nil then
            return refuse("is damaged")
        end
    end
    return {
        path = path,
        file = file,
        names = lists,
        frames = frames,
        connections = connections,
        connections_at = connections_at,
        texts_at = texts_at,
        texts_bytes = texts_bytes,
        frames_at = frames_at,
        blocks = {},
        count = 0,
    }
end

-- Return a record's block and its position in it, or nil if the block is damaged.
local function record_at(base_offset, bytes, number)
    local block_bytes = BLOCK * bytes
    local offset = base_offset + math.floor(number / BLOCK) * (block_bytes + 4)
    local block = index.blocks[offset]
    if block == nil then
        local data = read_at(index.file, offset, block_bytes + 4)
        if data == nil then
            return nil
        end
        block = data:sub(1, block_bytes)
        if checksum(block) ~= Struct.unpack("<I4", data, block_bytes + 1) then
            return nil
        end
        if index.count >= MOST_BLOCKS then
            index.blocks, index.count = {}, 0
        end
        index.blocks[offset], index.count = block, index.count + 1
    end
    return block, number % BLOCK * bytes + 1
end

local function add_problem(tree, sentence)
    tree:add(tcpwin):add(field.problem, sentence)
end

local function give_up(tree, sentence)
    index.file:close()
    index = nil
    report_failure("tcpwin: " .. sentence)
    add_problem(tree, sentence)
end

local function look_for_index(tree, time)
    is_looked_for = true
    local path, is_asked_for = tcpwin.prefs.index, true
    if path == "" then
        local known = time and io.open(string.format("%s/%.0f-%09d", KNOWN, time.secs, time.nsecs), "rb")
        path = known and known:read("*l")
        if known then
            known:close()
        end
        local file = path and io.open(path, "rb")
        if not file then
            add_problem(tree, "this capture has no index. Write it: " .. HOW)
            return
        end
        file:close()
    end
    local sentence
    index, sentence = open_index(path)
    if index == nil then
        report_failure("tcpwin: " .. sentence)
        add_problem(tree, sentence)
    end
end

-- Whether the capture's packet is the indexed one; 0 means unknown.
local function is_same(check, time)
    if check == 0 or time == nil or time.secs < 0 then
        return true
    end
    return (time.secs * 1000000 + math.floor(time.nsecs / 1000)) % 65521 + 1 == check
end

local function add_name(branch, kind, names, place)
    if place ~= NO_NAME and names[place] ~= nil then
        branch:add(kind, names[place])
    end
end

local function duration(microseconds)
    local seconds = math.floor(microseconds / 1000000)
    return NSTime.new(seconds, math.floor(microseconds - seconds * 1000000) * 1000)
end

local function add_connection(branch, number)
    local block, at = record_at(index.connections_at, CONNECTION_BYTES, number)
    if block == nil then
        return false
    end
    local text_at, verdict_bytes, fix_bytes, limit, second, confidence, owner, share, cost_us, sum =
        Struct.unpack("<I4I2I2BBBBfdI4", block, at)
    local size = verdict_bytes + fix_bytes
    local padded = math.ceil(size / 4) * 4
    if text_at + padded > index.texts_bytes then
        return false
    end
    local text = read_at(index.file, index.texts_at + text_at, padded)
    if text == nil or checksum(text) ~= sum then
        return false
    end
    local names = index.names
    add_name(branch, field.limit, names.limits, limit)
    add_name(branch, field.second_limit, names.limits, second)
    branch:add(field.share, math.floor(share * 10000 + 0.5) / 10000)
    branch:add(field.cost, duration(cost_us))
    add_name(branch, field.confidence, names.confidences, confidence)
    add_name(branch, field.owner, names.owners, owner)
    branch:add(field.verdict, text:sub(1, verdict_bytes))
    if fix_bytes > 0 then
        branch:add(field.fix, text:sub(verdict_bytes + 1, size))
    end
    return true
end

local function add_packet(branch, record)
    local names = index.names
    branch:add(field.direction, record.direction == 0 and "a_to_b" or "b_to_a")
    for _, key in ipairs({ "flight", "window" }) do
        if record[key] ~= ABSENT then
            branch:add(field[key], record[key])
        end
    end
    if record.rtt_us ~= ABSENT then
        branch:add(field.rtt, duration(record.rtt_us))
    end
    add_name(branch, field.cause, names.causes, record.cause)
    local events, place = record.events, 0
    while events > 0 do
        if events % 2 == 1 and names.events[place] ~= nil then
            branch:add(field.event, names.events[place])
        end
        events, place = math.floor(events / 2), place + 1
    end
end

function tcpwin.init()
    if index ~= nil then
        index.file:close()
    end
    index, is_looked_for = nil, false
end

function tcpwin.dissector(_, pinfo, tree)
    if not is_looked_for and pinfo.number == 1 then
        local found = packet_time()
        look_for_index(tree, found and found.value)
    end
    if index == nil then
        return
    end
    if pinfo.number > index.frames then
        give_up(tree, index.path .. " ends at packet " .. index.frames .. ", and the capture does not" .. AGAIN)
        return
    end
    local block, at = record_at(index.frames_at, FRAME_BYTES, pinfo.number - 1)
    if block == nil then
        give_up(tree, index.path .. " is damaged" .. AGAIN)
        return
    end
    local record = {}
    local connection, check, findings
    connection, record.flight, record.window, record.rtt_us, record.events, check, findings, record.cause, record.direction =
        Struct.unpack("<I4I4I4I4I4I2I2BB", block, at)
    local found = packet_time()
    if not is_same(check, found and found.value) then
        give_up(tree, index.path .. " is of another capture: packet " .. pinfo.number .. " differs" .. AGAIN)
        return
    end
    if connection == ABSENT and findings == 0 then
        return
    end
    local branch = tree:add(tcpwin)
    if connection ~= ABSENT then
        branch:add(field.connection, connection)
        if connection >= index.connections or not add_connection(branch, connection) then
            give_up(tree, index.path .. " is damaged" .. AGAIN)
            return
        end
        add_packet(branch, record)
    end
    if findings > 0 then
        for code in (index.names.findings[findings - 1] or ""):gmatch("[^,]+") do
            branch:add(field.finding, code)
        end
    end
end

register_postdissector(tcpwin)

local function quoted(text)
    if package.config:sub(1, 1) == "\\" then
        return '"' .. text .. '"'
    end
    return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function open_connection(number)
    if index == nil then
        report_failure("tcpwin: this capture has no index. Write it: " .. HOW)
        return
    end
    local words = string.format("%s wireshark open %s %d", COMMAND, quoted(index.path), number)
    if package.config:sub(1, 1) == "\\" then
        os.execute('start "" /b ' .. words)
    else
        os.execute(words .. " &")
    end
end

-- Wireshark 4.2 and later pass the selected packet to a menu item.
if register_packet_menu ~= nil then
    register_packet_menu("tcpwin/Open connection in tcpwin", function(...)
        for _, each in ipairs({ ... }) do
            if each.name == "tcpwin.connection" then
                open_connection(each.value)
                return
            end
        end
    end, "tcpwin.connection")
elseif gui_enabled() then
    register_menu("tcpwin/Open a connection in tcpwin", function()
        new_dialog("Open a connection in tcpwin", function(text)
            local number = tonumber(text)
            if number == nil or number < 0 or number ~= math.floor(number) then
                report_failure("tcpwin: " .. tostring(text) .. " is not a connection number")
                return
            end
            open_connection(number)
        end, "Number of the connection (tcpwin.connection)")
    end, MENU_TOOLS_UNSORTED)
end
