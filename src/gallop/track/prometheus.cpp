#include "gallop/track/prometheus.h"

#include <cmath>

#include <fmt/format.h>

namespace gallop::track {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '\n') {
      result += "\\n";
      continue;
    }
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + '"';
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

/// Groups all samples of a metric name.
class Family {
 public:
  Family(std::string& text, const char* name, const char* help) : text_(text), name_(name) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} gauge\n", name, help, name);
  }
  void add(const RunSummary& run, const std::string& labels, double value) {
    text_ += fmt::format("{}{{run={}{}}} {}\n", name_, quoted(run.name), labels, number(value));
  }

 private:
  std::string& text_;
  const char* name_;
};

}  // namespace

std::string prometheus_text(const std::vector<RunSummary>& runs) {
  std::string text;
  Family state(text, "gallop_run_state", "1 for the state that a run is in.");
  for (const RunSummary& run : runs) {
    state.add(run, fmt::format(",state=\"{}\"", state_name(run.state)), 1);
  }
  Family created(text, "gallop_run_created_timestamp_seconds", "Creation time of a run.");
  for (const RunSummary& run : runs) created.add(run, "", run.created);
  Family seconds(text, "gallop_run_duration_seconds",
                 "Seconds from the start of a run to its last record.");
  for (const RunSummary& run : runs) seconds.add(run, "", run.seconds);
  Family steps(text, "gallop_run_steps", "Reported updates of a run.");
  for (const RunSummary& run : runs) steps.add(run, "", static_cast<double>(run.steps));
  Family metric(text, "gallop_run_metric", "The last value of a metric of a run.");
  for (const RunSummary& run : runs) {
    for (const auto& [name, values] : run.metrics) {
      metric.add(run, ",metric=" + quoted(name), values.last);
    }
  }
  return text;
}

}  // namespace gallop::track
