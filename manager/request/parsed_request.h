#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/message/message.h"
#include "dns/tsig/tsig.h"

namespace pando::manager {

/// The octets of a request with its header, question and TSIG record, each read once on arrival.
/// Every later step takes this type instead of the octets. Sections after the question are read
/// later, by the step that needs the records: a forged request must not cost that work.
class ParsedRequest {
 public:
  explicit ParsedRequest(Bytes octets);
  // The reader points into the octets, whose address survives a move.
  ParsedRequest(ParsedRequest&&) noexcept = default;
  ParsedRequest& operator=(ParsedRequest&&) noexcept = default;
  ParsedRequest(const ParsedRequest&) = delete;
  ParsedRequest& operator=(const ParsedRequest&) = delete;

  /// False for a message that gets no answer: shorter than a header, or a response.
  [[nodiscard]] bool is_request() const noexcept { return header_ && !header_->qr; }
  [[nodiscard]] const Bytes& octets() const noexcept { return octets_; }
  [[nodiscard]] const Result<dns::Header>& header() const noexcept { return header_; }
  /// The only question (the zone section of an UPDATE, RFC 2136 §2.3). An error for a message with
  /// none, several, or a malformed one.
  [[nodiscard]] const Result<dns::Question>& question() const noexcept { return question_; }
  /// Name of the question, for the log; the root without a question.
  [[nodiscard]] dns::Name zone() const { return question_ ? question_->name : dns::Name(); }
  /// The TSIG record; an error for a message that RFC 8945 §5.1 answers FORMERR.
  [[nodiscard]] const Result<std::optional<dns::TsigRecord>>& tsig() const noexcept {
    return tsig_;
  }
  /// Reads the records after the question. Valid as long as the object.
  [[nodiscard]] dns::MessageReader records() const noexcept { return records_; }

 private:
  Result<dns::Question> read_question();

  Bytes octets_;
  dns::MessageReader records_;
  Result<dns::Header> header_;
  Result<dns::Question> question_;
  Result<std::optional<dns::TsigRecord>> tsig_;
};

/// Extended error (RFC 8914) of a reply, with a text for the client.
struct ReplyDetail {
  dns::ExtendedError code{};
  std::string_view text = {};
};
/// Makes a response to `request` without records: ID, opcode, question (the zone section of an
/// UPDATE) and `rcode`. The response has an OPT record if the request had one (RFC 6891 §6.1.1),
/// with `detail` in that OPT. Empty if the message gets no answer.
Bytes make_reply(const ParsedRequest& request, dns::Rcode rcode, bool authoritative,
                 const std::optional<ReplyDetail>& detail = std::nullopt);

}  // namespace pando::manager
