#include "http/observe/kernel_sockets.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "base/whole_number.h"
#include "http/observe/proc_file.h"

namespace pando::http {

namespace {

/// The next word of `line`, which is shortened; empty at its end.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

/// "0100007F:0035": words of 32 bits in the machine's order, as the kernel holds the address.
std::optional<Endpoint> endpoint_of(std::string_view text) {
  const auto colon = text.find(':');
  if (colon != 8 && colon != 32) return std::nullopt;
  const auto port = whole_number<std::uint16_t>(text.substr(colon + 1), 16);
  if (!port) return std::nullopt;
  Endpoint endpoint;
  endpoint.port = *port;
  std::size_t at = 0;
  if (colon == 8) {
    endpoint.address.octets[10] = endpoint.address.octets[11] = 0xFF;
    at = 12;
  }
  for (std::size_t i = 0; i < colon; i += 8, at += 4) {
    const auto word = whole_number<std::uint32_t>(text.substr(i, 8), 16);
    if (!word) return std::nullopt;
    std::memcpy(endpoint.address.octets.data() + at, &*word, sizeof *word);
  }
  return endpoint;
}

struct Row {
  Endpoint local;
  std::uint64_t queued = 0;
  std::uint64_t drops = 0;
};

/// "sl local remote st tx:rx tr:when retransmits uid timeout inode references pointer drops"
std::optional<Row> row_of(std::string_view line) {
  take_word(line);
  const auto local = endpoint_of(take_word(line));
  take_word(line);
  take_word(line);
  const std::string_view queues = take_word(line);
  std::string_view last;
  int rest = 0;
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line), ++rest)
    last = word;
  constexpr int kWordsBehindQueues = 8;
  const auto colon = queues.find(':');
  if (!local || rest != kWordsBehindQueues || colon == queues.npos) return std::nullopt;
  const auto queued = whole_number<std::uint64_t>(queues.substr(colon + 1), 16);
  const auto drops = whole_number<std::uint64_t>(last);
  if (!queued || !drops) return std::nullopt;
  return Row{*local, *queued, *drops};
}

}  // namespace

void add_udp_rows(std::string_view table, const std::vector<Endpoint>& listen,
                  std::vector<UdpFacts>& facts) {
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    const auto row = row_of(line);
    if (!row) continue;
    const auto found = std::find(listen.begin(), listen.end(), row->local);
    if (found == listen.end()) continue;
    UdpFacts& at = facts[static_cast<std::size_t>(found - listen.begin())];
    at.drops += row->drops;
    at.queued_bytes += row->queued;
  }
}

std::vector<UdpFacts> read_udp(const std::vector<Endpoint>& listen) {
  std::vector<UdpFacts> facts;
  for (const Endpoint& at : listen) facts.push_back({to_text(at), 0, 0});
  for (const char* path : {"/proc/net/udp", "/proc/net/udp6"})
    add_udp_rows(read_proc_file(path), listen, facts);
  return facts;
}

}  // namespace pando::http
