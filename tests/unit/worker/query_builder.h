#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "dns/message/message.h"
#include "dns/rdata/rdata.h"
#include "tests/unit/worker/zone_store.h"

namespace pando::testing {

/// Octets of a request, put together by hand so that wrong ones can be made as well.
struct Query {
  std::uint16_t id = 0x1234;
  std::uint8_t opcode = 0;
  bool qr = false, rd = false, cd = false;
  std::string qname = "www.example.com.";
  dns::RRType qtype = dns::RRType::kA;
  std::uint16_t qclass = 1;
  int questions = 1;
  bool edns = false;
  std::uint16_t payload = 1232;
  std::uint8_t version = 0;
  bool dnssec_ok = false;
  Bytes options = {};
  int opts = 1;
  std::optional<std::uint32_t> ixfr_serial = std::nullopt;

  [[nodiscard]] Bytes octets() const {
    Bytes out;
    append_be16(out, id);
    out.push_back(static_cast<std::uint8_t>((qr ? 0x80 : 0) | (opcode << 3) | (rd ? 1 : 0)));
    out.push_back(cd ? 0x10 : 0);
    append_be16(out, static_cast<std::uint16_t>(questions));
    append_be16(out, 0);
    append_be16(out, ixfr_serial ? 1 : 0);
    append_be16(out, static_cast<std::uint16_t>(edns ? opts : 0));
    for (int i = 0; i < questions; ++i) {
      append(out, name(qname).view().bytes());
      append_be16(out, static_cast<std::uint16_t>(qtype));
      append_be16(out, qclass);
    }
    if (ixfr_serial) append_soa(out);
    for (int i = 0; edns && i < opts; ++i) append_opt(out);
    return out;
  }

 private:
  void append_soa(Bytes& out) const {
    append(out, name(qname).view().bytes());
    append_be16(out, 6);
    append_be16(out, 1);
    append_be32(out, 0);
    append_be16(out, 22);
    append_be16(out, 0);  // two root names
    append_be32(out, *ixfr_serial);
    for (int i = 0; i < 4; ++i) append_be32(out, 0);
  }
  void append_opt(Bytes& out) const {
    out.push_back(0);
    append_be16(out, 41);
    append_be16(out, payload);
    out.push_back(0);
    out.push_back(version);
    append_be16(out, dnssec_ok ? 0x8000 : 0);
    append_be16(out, static_cast<std::uint16_t>(options.size()));
    append(out, options);
  }
};

inline Bytes option(std::uint16_t code, ByteView data) {
  Bytes out;
  append_be16(out, code);
  append_be16(out, static_cast<std::uint16_t>(data.size()));
  append(out, data);
  return out;
}

/// A response taken apart.
struct Response {
  dns::Header header;
  std::optional<dns::Question> question;
  std::vector<dns::MessageRecord> answer, authority, additional;
  std::optional<dns::Edns> edns;
  std::uint16_t rcode = 0;  ///< with its EDNS extension
  Bytes octets;

  [[nodiscard]] std::vector<std::string> answer_text() const { return text(answer); }
  [[nodiscard]] std::vector<std::string> text(const std::vector<dns::MessageRecord>& list) const {
    std::vector<std::string> lines;
    for (const auto& record : list) {
      Bytes rdata;
      EXPECT_TRUE(dns::decompress_rdata(record.type, octets, record.rdata_offset,
                                        record.rdata_length, rdata));
      lines.push_back(dns::to_text(record.owner) + " " + dns::to_text(record.type) + " " +
                      dns::rdata_to_text(record.type, rdata));
    }
    return lines;
  }
};

inline Response read_response(ByteView octets) {
  Response response;
  response.octets.assign(octets.begin(), octets.end());
  dns::MessageReader reader(response.octets);
  auto header = reader.header();
  EXPECT_TRUE(header);
  if (!header) return response;
  response.header = *header;
  response.rcode = header->rcode;
  for (int i = 0; i < header->qdcount; ++i) {
    auto question = reader.question();
    EXPECT_TRUE(question);
    if (question) response.question = *question;
  }
  const auto read = [&](std::uint16_t count, std::vector<dns::MessageRecord>& list) {
    for (int i = 0; i < count; ++i) {
      auto record = reader.record();
      EXPECT_TRUE(record);
      if (!record) return;
      if (record->type == dns::RRType::kOPT) {
        response.edns = dns::read_opt(response.octets, *record).value();
        response.rcode =
            static_cast<std::uint16_t>(response.rcode | (response.edns->extended_rcode << 4));
      } else {
        list.push_back(*record);
      }
    }
  };
  read(header->ancount, response.answer);
  read(header->nscount, response.authority);
  read(header->arcount, response.additional);
  EXPECT_TRUE(reader.at_end());
  return response;
}

}  // namespace pando::testing
