#include <algorithm>
#include <vector>

#include "dns/message/message.h"

// Any octets are read without harm. What reads is written again, uncompressed RDATA and all, and
// must read back as the same records, also in a message that is too small for all of them.

namespace {

using namespace pando;
using namespace pando::dns;

struct Record {
  Section section;
  MessageRecord read;
  Bytes rdata;
};

struct Message {
  Header header;
  std::vector<Question> questions;
  std::vector<Record> records;
};

void look_at_edns(ByteView message, const MessageRecord& record) {
  const auto edns = read_opt(message, record);
  if (!edns) return;
  PANDO_ASSERT(edns->udp_payload >= 512);
  for (unsigned code = 0; code < 20; ++code) {
    const auto option = find_option(edns->options, static_cast<std::uint16_t>(code));
    if (!option || option->empty()) continue;
    PANDO_ASSERT(option->data() >= message.data());
    PANDO_ASSERT(option->data() + option->size() <= message.data() + message.size());
  }
}

/// Everything up to the first fault.
Message read_all(ByteView octets) {
  Message message;
  MessageReader reader(octets);
  const auto header = reader.header();
  if (!header) return message;
  message.header = *header;
  for (unsigned i = 0; i < header->qdcount; ++i) {
    const auto question = reader.question();
    if (!question) return message;
    message.questions.push_back(*question);
  }
  const std::array counts = {header->ancount, header->nscount, header->arcount};
  for (std::size_t section = 0; section < counts.size(); ++section) {
    for (unsigned i = 0; i < counts[section]; ++i) {
      MessageReader without_owner = reader;
      RecordFields fields;
      const auto skimmed = without_owner.record(fields);
      const auto record = reader.record();
      PANDO_ASSERT(skimmed.has_value() == record.has_value());
      if (!record) return message;
      PANDO_ASSERT(without_owner.offset() == reader.offset() && fields.type == record->type &&
                   fields.rdata_offset == record->rdata_offset &&
                   fields.rdata_length == record->rdata_length && fields.ttl == record->ttl &&
                   fields.owner_is_root == record->owner.view().is_root());
      PANDO_ASSERT(record->rdata_offset + record->rdata_length <= octets.size());
      if (record->type == RRType::kOPT) look_at_edns(octets, *record);
      Bytes rdata;
      if (!decompress_rdata(record->type, octets, record->rdata_offset, record->rdata_length,
                            rdata))
        continue;
      PANDO_ASSERT(check_rdata(record->type, rdata));
      message.records.push_back({static_cast<Section>(section), *record, std::move(rdata)});
    }
  }
  return message;
}

bool put(MessageWriter& writer, const Record& record) {
  return writer.put_record(record.section, record.read.owner, record.read.type,
                           record.read.rr_class, record.read.ttl, record.rdata);
}

void expect_same(const Record& a, const Record& b) {
  PANDO_ASSERT(a.section == b.section && a.read.owner == b.read.owner);
  PANDO_ASSERT(a.read.type == b.read.type && a.read.rr_class == b.read.rr_class);
  PANDO_ASSERT(a.read.ttl == b.read.ttl);
  PANDO_ASSERT(compare_rdata_canonical(a.read.type, a.rdata, b.rdata) == 0);
}

/// Writes as many records as fit, and reads them back.
void write_and_compare(const Message& message, std::size_t limit) {
  std::vector<std::uint8_t> space(limit);
  MessageWriter writer(space, limit);
  writer.put_header(message.header);
  for (const Question& question : message.questions)
    if (!writer.put_question(question.name, question.type, question.rr_class)) return;
  std::vector<const Record*> written;
  for (const Record& record : message.records) {
    const auto mark = writer.mark();
    if (put(writer, record))
      written.push_back(&record);
    else
      PANDO_ASSERT(writer.size() == mark.size && writer.mark().counts == mark.counts);
  }
  const Message again = read_all(writer.finish());
  PANDO_ASSERT(again.questions.size() == message.questions.size());
  PANDO_ASSERT(again.records.size() == written.size());
  for (std::size_t i = 0; i < written.size(); ++i) expect_same(*written[i], again.records[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kMaxMessageOctets) return 0;
  const Message message = read_all({data, size});
  if (message.questions.empty() && message.records.empty()) return 0;
  write_and_compare(message, kMaxMessageOctets);
  write_and_compare(message, std::max<std::size_t>(kHeaderOctets, size * 3 / 4));
  return 0;
}
