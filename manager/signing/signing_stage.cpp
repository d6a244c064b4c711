#include "manager/signing/signing_stage.h"

namespace pando::manager {

using zone::ParentRequest;

std::string_view to_text(SigningStage stage) noexcept {
  switch (stage) {
    case SigningStage::kSigning:
      return "signing";
    case SigningStage::kSpreading:
      return "spreading";
    case SigningStage::kDsWanted:
      return "ds-wanted";
    case SigningStage::kSecure:
      return "secure";
    case SigningStage::kNoDsWanted:
      return "no-ds-wanted";
    case SigningStage::kDsExpiring:
      return "ds-expiring";
    case SigningStage::kUnsigning:
      return "unsigning";
    case SigningStage::kUnsigned:
      return "unsigned";
  }
  return "";
}

namespace {

SigningState unsigning_state(const SigningFacts& facts, const SigningWaits& waits,
                             ParentRequest removal, std::uint64_t now) noexcept {
  if (facts.unsigned_since != 0) return {SigningStage::kUnsigned};
  if (facts.ds_gone == 0) return {SigningStage::kNoDsWanted, 0, removal};
  const std::uint64_t until = facts.ds_gone + waits.parent_ds_ttl + waits.propagation;
  if (now < until) return {SigningStage::kDsExpiring, until, removal};
  return {SigningStage::kUnsigning};
}

SigningState stage_of(const SigningFacts& facts, const SigningWaits& waits,
                      std::uint64_t now) noexcept {
  const auto request = [&waits](ParentRequest wanted) {
    return waits.publishes_cds ? wanted : ParentRequest::kNone;
  };
  if (facts.unsign_since != 0)
    return unsigning_state(facts, waits, request(ParentRequest::kRemoval), now);
  if (facts.ds_seen != 0) return {SigningStage::kSecure, 0, request(ParentRequest::kKeys)};
  if (facts.signed_since == 0) return {};
  const std::uint64_t until = facts.signed_since + facts.max_ttl + waits.propagation;
  if (facts.cds_since == 0 && now < until) return {SigningStage::kSpreading, until};
  return {SigningStage::kDsWanted, 0, request(ParentRequest::kKeys)};
}

}  // namespace

SigningState signing_state(const SigningFacts& facts, std::span<const FolderKey> keys,
                           const SigningWaits& waits, std::uint64_t now) {
  SigningState state = stage_of(facts, waits, now);
  if (facts.roll.step == RollStep::kNone) return state;
  const RollWaits times{facts.max_ttl, waits.propagation, waits.parent_ds_ttl,
                        waits.rolls_by_itself};
  state.roll = facts.unsign_since != 0
                   ? RollState{RollWait::kUnsigning}
                   : roll_state(facts.roll, shape_of(keys, facts.roll), times, now);
  return state;
}

}  // namespace pando::manager
