#include "gallop/app/tune/study_view.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "gallop/app/print.h"
#include "gallop/app/terminal.h"
#include "gallop/base/text.h"
#include "gallop/plot/labels.h"
#include "gallop/tune/study_text.h"

namespace gallop::app {

namespace {

constexpr size_t kShownTrials = 12;

// Prints a JSON object with an event name added at its beginning.
void print(const std::string& json, const char* event) {
  print_to(stdout, "{{\"event\":\"{}\",{}\n", event, std::string_view(json).substr(1));
}

// "loss (minimize), accuracy (maximize)"
std::string goals_text(const tune::StudySettings& settings) {
  std::string text;
  for (const tune::Objective& objective : settings.objectives) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", printable(objective.metric),
                        objective.maximize ? "maximize" : "minimize");
  }
  return text;
}

}  // namespace

StudyView::StudyView(Style style, const tune::TuneRegistries& registries)
    : style_(style),
      registries_(registries),
      is_live_(style == Style::kText && isatty(STDOUT_FILENO) == 1) {}

void StudyView::begin(const tune::Study& study, const tune::StudyPlace& place, int workers) {
  printed_ = study.finished().size();
  if (style_ != Style::kText) return;
  const auto& settings = study.settings();
  const size_t parameters = settings.space.size();
  print_to(stdout, "study      {}, seed {}: {} parameter{}, sampler {}, pruner {}\n",
           place.folder.string(), settings.seed, parameters, parameters == 1 ? "" : "s",
           tune::name_in(settings.sampler), tune::name_in(settings.pruner));
  print_to(stdout, "metric     {}\n", goals_text(settings));
  print_to(stdout, "workers    {} on this machine\n", workers);
  if (printed_ > 0) print_to(stdout, "resumed    {}\n", progress_text(study));
  std::fflush(stdout);
}

void StudyView::look(const tune::Study& study) {
  for (; printed_ < study.finished().size(); ++printed_) tell(study, study.finished()[printed_]);
  if (is_live_) draw(study);
}

void StudyView::end(const tune::Study& study) {
  look(study);
  if (style_ == Style::kJson) {
    print(study_json(study, /*indent=*/-1), "end");
  } else {
    print_to(stdout, "{}\n", standing_text(study, registries_));
  }
  std::fflush(stdout);
}

void StudyView::tell(const tune::Study& study, int64_t number) {
  const tune::Trial& trial = trial_at(study, number);
  if (style_ == Style::kJson) {
    print(trial_json(study, trial), "trial");
  } else if (style_ == Style::kText && !is_live_) {
    const bool is_best = study.objectives() == 1 && study.best() == number;
    print_to(stdout, "trial {:<5} {:<8}  {}{}  {}\n", number, tune::state_name(trial.state),
             result_text(study, trial), is_best ? "  best so far" : "",
             point_text(study, trial, 4));
  }
  std::fflush(stdout);
}

void StudyView::draw(const tune::Study& study) {
  const auto columns = static_cast<size_t>(terminal_columns());
  // The terminal must not wrap lines, as they are counted to redraw them.
  std::string table = plot::shortened(progress_text(study), columns, "...") + "\n";
  if (const auto best = study.best(); best && study.objectives() == 1) {
    const std::string text = best_text(study);
    table += plot::shortened("best: " + text.substr(0, text.find('\n')), columns, "...") + "\n";
  }
  // Lines that scrolled away cannot be redrawn. One line is the header, one the cursor's.
  const auto above = std::count(table.begin(), table.end(), '\n') + 2;
  const auto most = std::max<int64_t>(1, terminal_rows() - above);
  table += trials_table(study, kShownTrials, columns, static_cast<size_t>(most));
  if (table == drawn_) return;
  // Overwrites the previous table.
  const auto lines = std::count(drawn_.begin(), drawn_.end(), '\n');
  if (lines > 0) print_to(stdout, "\x1b[{}A\x1b[J", lines);
  std::fputs(table.c_str(), stdout);
  std::fflush(stdout);
  drawn_ = table;
}

}  // namespace gallop::app
