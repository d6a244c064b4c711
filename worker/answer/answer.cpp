#include "worker/answer/answer.h"

#include <cstring>

namespace pando::worker {

dns::NameView Owner::name(dns::Name& scratch) const noexcept {
  if (head_.empty()) return tail_;
  // A stored owner was a legal name when it was stored; a damaged store gives the apex instead.
  auto joined = dns::Name::join(head_, tail_);
  if (!joined) return tail_;
  scratch = *joined;
  return scratch.view();
}

void Answer::clear() noexcept {
  rcode = dns::Rcode::kNoError;
  aa = false;
  overflow = false;
  depends_on_client = false;
  ede.reset();
  postponed.kind = AnswerPart::Kind::kNone;
  first = {};
  answer.clear();
  authority.clear();
  additional.clear();
  names_used_ = 0;
}

dns::NameView Answer::keep(const dns::Name& name) noexcept {
  PANDO_ASSERT(names_used_ + name.size() <= names_.size());
  std::uint8_t* place = names_.data() + names_used_;
  std::memcpy(place, name.data(), name.size());
  names_used_ += name.size();
  return {place, name.size()};
}

}  // namespace pando::worker
