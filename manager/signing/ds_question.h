#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/message/message.h"

namespace pando::manager {

/// The DS records that a validating resolver has found at a zone's parent.
struct ParentDs {
  bool is_validated = false;    ///< the resolver vouches for them (AD, RFC 4035 §3.2.3)
  std::vector<Bytes> records{};  ///< RDATA; none: the parent has proven that there are none
};

/// A question for a zone's DS records to a resolver, and the data to check its answer.
class DsQuestion {
 public:
  DsQuestion(const dns::Name& zone, std::uint16_t id);
  [[nodiscard]] const Bytes& octets() const noexcept { return octets_; }
  /// kInvalid: the message is no answer to this question, or an error: the text has the RCODE.
  [[nodiscard]] Result<ParentDs> read_answer(ByteView message) const;

 private:
  dns::Name zone_;
  std::uint16_t id_;
  Bytes octets_;
};

}  // namespace pando::manager
