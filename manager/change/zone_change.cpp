#include "manager/change/zone_change.h"

namespace pando::manager {

std::string_view to_text(ChangeSource source) noexcept {
  switch (source) {
    case ChangeSource::kUpdate:
      return "update";
    case ChangeSource::kEdit:
      return "edit";
    case ChangeSource::kFile:
      return "file";
    case ChangeSource::kTransfer:
      return "transfer";
    case ChangeSource::kRollback:
      return "rollback";
    case ChangeSource::kSigning:
      return "signing";
  }
  return "unknown";
}

std::string_view to_text(ChangeStep step) noexcept {
  switch (step) {
    case ChangeStep::kWaiting:
      return "waiting";
    case ChangeStep::kComputing:
      return "computing";
    case ChangeStep::kSigning:
      return "signing";
    case ChangeStep::kJudging:
      return "judging";
    case ChangeStep::kStaging:
      return "staging";
    case ChangeStep::kJournalling:
      return "journalling";
  }
  return "unknown";
}

}  // namespace pando::manager
