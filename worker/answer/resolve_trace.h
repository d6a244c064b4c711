#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dns/name.h"

namespace pando::worker {

/// The steps that resolve() takes, for explanations of an answer. Workers record none. A step that
/// finds no room is left out; the room suffices for the longest chain.
class ResolveTrace {
 public:
  /// `name` is the name in hand: QNAME, or the target of an alias. `other` is named per event.
  enum class Event : std::uint8_t {
    kExists,            ///< `name` owns records
    kEmptyNonTerminal,  ///< `name` owns none, but a name below it does (RFC 8020)
    kWildcard,          ///< `name` does not exist; the wildcard `other` owns records
    kEmptyWildcard,     ///< likewise, but `other` is an empty non-terminal
    kNoWildcard,        ///< `name` does not exist, nor does a wildcard below `other`, its encloser
    kReferral,          ///< `other` is a zone cut at or above `name`
    kDname,             ///< `other`, above `name`, owns a DNAME
    kNameTooLong,       ///< the name that the DNAME makes has more than 255 octets (YXDOMAIN)
    kAlias,             ///< `name` is an alias of `other`, which is looked up next
    kOutside,           ///< `name` is an alias of `other`, which is not in the zone
    kLoop,              ///< `name` is an alias of `other`, which was looked up before
    kDamaged,           ///< what the store has of `name` cannot be read
  };
  struct Step {
    Event event{};
    dns::Name name;
    dns::Name other;  ///< the root where the event names none
  };

  void add(Event event, dns::NameView name, dns::NameView other) noexcept {
    if (size_ < steps_.size()) steps_[size_++] = {event, dns::Name(name), dns::Name(other)};
  }
  [[nodiscard]] std::span<const Step> steps() const noexcept { return {steps_.data(), size_}; }

 private:
  static constexpr std::size_t kMaxTraceSteps = 64;  // three for each name of a chain, and some

  std::size_t size_ = 0;
  std::array<Step, kMaxTraceSteps> steps_;
};

}  // namespace pando::worker
