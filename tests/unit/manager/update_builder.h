#pragma once

#include "dns/message/message.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager::testing {

/// Writes UPDATE messages (RFC 2136 §2) in the words of nsupdate.
class UpdateBuilder {
 public:
  explicit UpdateBuilder(std::string_view zone = "@", dns::RRType type = dns::RRType::kSOA,
                         dns::RRClass rr_class = dns::RRClass::kIN)
      : zone_(name(zone)), zone_type_(type), zone_class_(rr_class) {}

  // Prerequisites (§2.4). Types as text; "ANY" for the whole name.
  UpdateBuilder& yx(std::string_view owner, std::string_view type) {
    return prerequisite(owner, type, dns::RRClass::kANY);
  }
  UpdateBuilder& nx(std::string_view owner, std::string_view type) {
    return prerequisite(owner, type, dns::RRClass::kNONE);
  }
  UpdateBuilder& has(const std::string& line) {
    const zone::Record one = record(line);
    prerequisites_.push_back(
        {dns::Name(one.owner), one.type, dns::RRClass::kIN, one.ttl.seconds, one.rdata});
    return *this;
  }
  // Updates (§2.5).
  UpdateBuilder& add(const std::string& line) {
    const zone::Record one = record(line);
    updates_.push_back(
        {dns::Name(one.owner), one.type, dns::RRClass::kIN, one.ttl.seconds, one.rdata});
    return *this;
  }
  UpdateBuilder& remove(const std::string& owner_type_rdata) {
    std::istringstream words(owner_type_rdata);
    std::string owner, rest;
    words >> owner;
    std::getline(words >> std::ws, rest);
    const zone::Record one = record(owner + " 0 " + rest);
    updates_.push_back({dns::Name(one.owner), one.type, dns::RRClass::kNONE, 0, one.rdata});
    return *this;
  }
  UpdateBuilder& remove_set(std::string_view owner, std::string_view type) {
    updates_.push_back(
        {name(owner), dns::rrtype_from_text(type).value(), dns::RRClass::kANY, 0, {}});
    return *this;
  }
  UpdateBuilder& remove_name(std::string_view owner) {
    updates_.push_back({name(owner), dns::RRType::kANY, dns::RRClass::kANY, 0, {}});
    return *this;
  }
  // Anything else.
  struct Raw {
    dns::Name owner;
    dns::RRType type{};
    dns::RRClass rr_class{};
    std::uint32_t ttl = 0;
    Bytes rdata;
  };
  UpdateBuilder& raw_prerequisite(Raw raw) {
    prerequisites_.push_back(std::move(raw));
    return *this;
  }
  UpdateBuilder& raw_update(Raw raw) {
    updates_.push_back(std::move(raw));
    return *this;
  }

  [[nodiscard]] Bytes message(std::uint16_t id = 4711) const {
    Bytes space(dns::kMaxMessageOctets);
    dns::MessageWriter writer(space, space.size());
    dns::Header header;
    header.id = id;
    header.opcode = dns::Opcode::kUpdate;
    writer.put_header(header);
    EXPECT_TRUE(writer.put_question(zone_, zone_type_, zone_class_));
    for (const Raw& raw : prerequisites_) put(writer, dns::Section::kAnswer, raw);
    for (const Raw& raw : updates_) put(writer, dns::Section::kAuthority, raw);
    space.resize(writer.finish().size());
    return space;
  }

 private:
  static void put(dns::MessageWriter& writer, dns::Section section, const Raw& raw) {
    EXPECT_TRUE(writer.put_record(section, raw.owner, raw.type, raw.rr_class, raw.ttl, raw.rdata));
  }
  UpdateBuilder& prerequisite(std::string_view owner, std::string_view type,
                              dns::RRClass rr_class) {
    const dns::RRType wanted =
        type == "ANY" ? dns::RRType::kANY : dns::rrtype_from_text(type).value();
    prerequisites_.push_back({name(owner), wanted, rr_class, 0, {}});
    return *this;
  }

  dns::Name zone_;
  dns::RRType zone_type_;
  dns::RRClass zone_class_;
  std::vector<Raw> prerequisites_, updates_;
};

}  // namespace pando::manager::testing
