#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "dns/message/message.h"
#include "dns/rdata/rdata.h"

/// A response message as text, for comparison with what a scenario expects.
namespace scenario {

struct Response {
  std::string head;                      ///< "NOERROR aa tc"
  std::vector<std::string> sections[3];  ///< "owner ttl type rdata", lower case
  std::string error;                     ///< the message could not be read
};

inline std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

inline std::string record_text(const pando::dns::MessageRecord& record, pando::ByteView message,
                               std::string& error) {
  pando::Bytes rdata;
  const auto status = pando::dns::decompress_rdata(record.type, message, record.rdata_offset,
                                                   record.rdata_length, rdata);
  if (!status) error = status.error().text;
  return lower(to_text(record.owner.view()) + " " + std::to_string(record.ttl) + " " +
               to_text(record.type) + " " + pando::dns::rdata_to_text(record.type, rdata));
}

inline Response read_response(pando::ByteView message) {
  Response response;
  pando::dns::MessageReader reader(message);
  const auto header = reader.header();
  if (!header) return response.error = "no header", response;
  response.head = to_text(static_cast<pando::dns::Rcode>(header->rcode));
  if (header->aa) response.head += " aa";
  if (header->tc) response.head += " tc";
  for (unsigned i = 0; i < header->qdcount; ++i)
    if (!reader.question()) return response.error = "bad question", response;
  const unsigned counts[] = {header->ancount, header->nscount, header->arcount};
  for (int section = 0; section < 3; ++section) {
    for (unsigned i = 0; i < counts[section]; ++i) {
      const auto record = reader.record();
      if (!record) return response.error = record.error().text, response;
      response.sections[section].push_back(record_text(*record, message, response.error));
    }
  }
  if (!reader.at_end()) response.error = "octets behind the last record";
  return response;
}

/// A line of a scenario in the form of Response::sections; RDATA goes through the wire form, unless
/// it ends with "...".
inline std::string canonical_line(const std::string& line, std::string& error) {
  const auto first = line.find(' '), second = line.find(' ', first + 1),
             third = line.find(' ', second + 1);
  const std::string owner = line.substr(0, first), rdata = line.substr(third + 1);
  const std::string ttl = line.substr(first + 1, second - first - 1);
  const auto name = pando::dns::Name::from_text(owner);
  const auto type = pando::dns::rrtype_from_text(line.substr(second + 1, third - second - 1));
  if (!name || !type) return error = "bad line: " + line, line;
  std::string text = rdata;
  if (!rdata.ends_with("...")) {
    pando::Bytes wire;
    const auto status = pando::dns::rdata_from_text(*type, std::string_view(rdata), {}, wire);
    if (!status) error = status.error().text + ": " + line;
    text = pando::dns::rdata_to_text(*type, wire);
  }
  return lower(to_text(name->view()) + " " + ttl + " " + to_text(*type) + " " + text);
}

/// `expected` may end with "...".
inline bool line_matches(const std::string& expected, const std::string& actual) {
  if (!expected.ends_with("...")) return expected == actual;
  return actual.compare(0, expected.size() - 3, expected, 0, expected.size() - 3) == 0;
}

}  // namespace scenario
