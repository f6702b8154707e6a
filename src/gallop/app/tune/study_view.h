#pragma once

#include <string>

#include "gallop/tune/registries.h"
#include "gallop/tune/study.h"
#include "gallop/tune/study_place.h"

namespace gallop::app {

/// What is printed of a study while it runs: a line a trial that has ended, on a terminal a table
/// that is drawn again.
class StudyView {
 public:
  enum class Style { kText, kJson, kQuiet };  ///< kQuiet: only the end.

  /// `registries` must outlive it.
  StudyView(Style style, const tune::TuneRegistries& registries);

  /// `workers` of this process.
  void begin(const tune::Study& study, const tune::StudyPlace& place, int workers);
  void look(const tune::Study& study);
  /// Something else has been printed: the table that stands above it stays.
  void leave_table() { drawn_.clear(); }
  void end(const tune::Study& study);

 private:
  void tell(const tune::Study& study, int64_t number);
  void draw(const tune::Study& study);

  Style style_;
  const tune::TuneRegistries& registries_;
  bool is_live_;
  size_t told_ = 0;
  std::string drawn_;
};

}  // namespace gallop::app
