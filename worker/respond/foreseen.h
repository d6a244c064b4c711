#pragma once

#include "worker/respond/answer_table.h"
#include "worker/respond/answer_templates.h"
#include "zone/read/store_view.h"

namespace pando::worker {

/// Facts about a question, found while requests were read together, before its turn came.
/// All but `whole` is about one zone of the pinned version: an answer from another zone takes
/// nothing of it.
struct Foreseen {
  AnswerPlace whole;  ///< of the question among WholeAnswers; nowhere for a referral
  zone::ZoneView zone;
  const zone::Match* match = nullptr;  ///< of the question's name in `zone`; null if `is_recalled`
  /// The lookup was not made: SharedLookups had its result, which is in `zone`, `record` and
  /// `part`.
  bool is_recalled = false;
  zone::Bookmark record;  ///< the delegation, or the proof that the name does not exist, if any
  /// The part of the answer that may be cached: its place among AnswerTemplates, and its key there.
  bool has_part = false;
  AnswerTemplates::Kind part_kind{};
  AnswerPlace part;
  dns::NameView part_name;

  /// True when `part` is the place of this part of an answer from `zone`. `name` is a part of the
  /// question's name.
  [[nodiscard]] bool is_part(AnswerTemplates::Kind kind, dns::NameView name) const noexcept {
    return has_part && part_kind == kind && part_name.data() == name.data() &&
           part_name.size() == name.size();
  }
};

}  // namespace pando::worker
