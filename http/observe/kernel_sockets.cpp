#include "http/observe/kernel_sockets.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <sstream>

#include "base/bytes.h"
#include "base/whole_number.h"
#include "http/observe/proc_file.h"

namespace pando::http {

namespace {

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
std::optional<Row> row_of(const std::string& line) {
  constexpr std::size_t kWords = 13;
  std::istringstream in(line);
  const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
  if (words.size() != kWords) return std::nullopt;
  const std::string_view queues = words[4];
  const auto local = endpoint_of(words[1]);
  const auto queued = whole_number<std::uint64_t>(queues.substr(queues.find(':') + 1), 16);
  const auto drops = whole_number<std::uint64_t>(words.back());
  if (!local || !queued || !drops || queues.find(':') == queues.npos) return std::nullopt;
  return Row{*local, *queued, *drops};
}

}  // namespace

void add_udp_rows(std::string_view table, const std::vector<Endpoint>& listen,
                  std::vector<UdpFacts>& facts) {
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    const auto row = row_of(std::string(line));
    if (!row) continue;
    // The table has no scopes.
    const auto found = std::find_if(listen.begin(), listen.end(), [&row](const Endpoint& at) {
      return at.address.without_scope() == row->local.address && at.port == row->local.port;
    });
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
