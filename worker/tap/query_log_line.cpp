#include "worker/tap/query_log_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "dns/message/message.h"

namespace pando::worker {

namespace {

/// The object that is being written: commas between its members.
class JsonObject {
 public:
  explicit JsonObject(std::string& out) : out_(out) { out_ += '{'; }

  /// `text` is printable ASCII.
  void text(std::string_view key, std::string_view text) {
    begin(key);
    out_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') out_ += '\\';
      out_ += c;
    }
    out_ += '"';
  }
  void number(std::string_view key, std::uint64_t number) {
    begin(key);
    fmt::format_to(std::back_inserter(out_), "{}", number);
  }
  void null(std::string_view key) {
    begin(key);
    out_ += "null";
  }
  void begin(std::string_view key) {
    if (!std::exchange(first_, false)) out_ += ',';
    fmt::format_to(std::back_inserter(out_), "\"{}\":", key);
  }
  void finish() { out_ += "}\n"; }

 private:
  std::string& out_;
  bool first_ = true;
};

/// The words of those bits that are set.
struct FlagWord {
  bool set = false;
  std::string_view word{};
};
template <std::size_t N>
void put_flags(JsonObject& json, std::string& out, std::string_view key,
               const FlagWord (&flags)[N]) {
  json.begin(key);
  out += '[';
  bool first = true;
  for (const FlagWord& flag : flags) {
    if (!flag.set) continue;
    fmt::format_to(std::back_inserter(out), "{}\"{}\"", first ? "" : ",", flag.word);
    first = false;
  }
  out += ']';
}

/// RFC 3339 in UTC, with microseconds.
std::string time_text(const timespec& time) {
  std::tm utc{};
  ::gmtime_r(&time.tv_sec, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     time.tv_nsec / 1000);
}

/// A clock that was put back gives 0.
std::uint64_t microseconds_between(const timespec& begin, const timespec& end) {
  const std::int64_t time = (static_cast<std::int64_t>(end.tv_sec) - begin.tv_sec) * 1'000'000 +
                            (end.tv_nsec - begin.tv_nsec) / 1000;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(time, 0));
}

std::string_view protocol_word(ipc::Transport transport) {
  switch (transport) {
    case ipc::Transport::kUdp:
      return "udp";
    case ipc::Transport::kTcp:
      return "tcp";
    case ipc::Transport::kTls:
      return "dot";
  }
  return "udp";
}

std::string_view end_word(ExchangeEnd end) {
  switch (end) {
    case ExchangeEnd::kAnswered:
      return "answered";
    case ExchangeEnd::kDropped:
      return "dropped";
    case ExchangeEnd::kTransfer:
      return "transfer";
  }
  return "dropped";
}

/// The upper eight bits of an RCODE stand in the OPT record (RFC 6891 §6.1.3). A response with such
/// an RCODE has no other section, so records of answers need not be walked.
dns::Rcode rcode_of(ByteView response, const dns::Header& header) {
  std::uint16_t rcode = header.rcode;
  dns::MessageReader reader(response);
  if (header.ancount + header.nscount > 0 || !reader.header()) return dns::Rcode{rcode};
  for (std::uint16_t i = 0; i < header.qdcount; ++i)
    if (!reader.question()) return dns::Rcode{rcode};
  for (std::uint16_t i = 0; i < header.arcount; ++i) {
    const auto record = reader.record();
    if (!record) break;
    if (record->type == dns::RRType::kOPT)
      rcode = static_cast<std::uint16_t>(rcode | (record->ttl >> 24U) << 4U);
  }
  return dns::Rcode{rcode};
}

void put_request(JsonObject& json, std::string& out, const Request& request) {
  json.text("opcode", dns::to_text(request.header.opcode));
  if (request.has_question) {
    json.text("qname", dns::to_text(request.question.name));
    json.text("qtype", dns::to_text(request.question.type));
    json.text("qclass", dns::to_text(request.question.rr_class));
  } else {
    for (const char* key : {"qname", "qtype", "qclass"}) json.null(key);
  }
  put_flags(json, out, "flags",
            {{request.header.rd, "rd"},
             {request.header.ad, "ad"},
             {request.header.cd, "cd"},
             {request.edns.has_value(), "edns"},
             {request.edns && request.edns->dnssec_ok, "do"}});
  if (request.tsig)
    json.text("key", dns::to_text(request.tsig->key_name));
  else
    json.null("key");
}

void put_response(JsonObject& json, std::string& out, ByteView response) {
  const auto header = dns::read_header(response);
  if (!header) {
    json.null("rcode");
    put_flags(json, out, "response_flags", {{false, "aa"}});
    return json.null("answers");
  }
  json.text("rcode", dns::to_text(rcode_of(response, *header)));
  put_flags(json, out, "response_flags",
            {{header->aa, "aa"}, {header->tc, "tc"}, {header->ad, "ad"}});
  json.number("answers", header->ancount);
}

}  // namespace

void put_query_log_line(const Exchange& exchange, ExchangeEnd end, ByteView request,
                        ByteView response, const timespec& sent, std::string& out) {
  Request parsed;
  // An error leaves what was parsed before it.
  [[maybe_unused]] const ParseOutcome outcome = parse_request(request, parsed);
  JsonObject json(out);
  json.text("time", time_text(exchange.received));
  json.text("client", to_text(exchange.client.remote.address));
  json.number("port", exchange.client.remote.port);
  json.text("server", to_text(exchange.client.local.address));
  json.text("protocol", protocol_word(exchange.client.transport));
  put_request(json, out, parsed);
  if (exchange.zone.empty())
    json.null("zone");
  else
    json.text("zone", dns::to_text(dns::NameView(exchange.zone.data(), exchange.zone.size())));
  json.text("result", end_word(end));
  put_response(json, out, response);
  json.number("request_size", request.size());
  if (response.empty()) {
    json.null("size");
    json.null("duration_us");
  } else {
    json.number("size", response.size());
    json.number("duration_us", microseconds_between(exchange.received, sent));
  }
  json.finish();
}

}  // namespace pando::worker
