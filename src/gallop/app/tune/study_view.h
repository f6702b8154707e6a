#pragma once

#include <string>

#include "gallop/tune/registries.h"
#include "gallop/tune/study.h"
#include "gallop/tune/study_place.h"

namespace gallop::app {

/// The output of a running study: a line per finished trial, or a live table on a terminal.
class StudyView {
 public:
  enum class Style { kText, kJson, kQuiet };  ///< kQuiet: only the final result.

  /// `registries` must outlive the view.
  StudyView(Style style, const tune::TuneRegistries& registries);

  /// `workers`: number of workers of this process.
  void begin(const tune::Study& study, const tune::StudyPlace& place, int workers);
  void look(const tune::Study& study);
  /// Keeps the current table, as other output follows.
  void leave_table() { drawn_.clear(); }
  void end(const tune::Study& study);

 private:
  void tell(const tune::Study& study, int64_t number);
  void draw(const tune::Study& study);

  Style style_;
  const tune::TuneRegistries& registries_;
  bool is_live_;
  size_t printed_ = 0;
  std::string drawn_;
};

}  // namespace gallop::app
