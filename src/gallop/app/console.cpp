#include "gallop/app/console.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/json_line.h"
#include "gallop/app/metric_text.h"
#include "gallop/app/print.h"
#include "gallop/app/terminal.h"
#include "gallop/base/clock.h"
#include "gallop/base/memory.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

using train::EvaluationEvent;
using train::Outcome;
using train::StepEvent;

constexpr double kLiveInterval = 0.1;
constexpr double kPlainInterval = 10;

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string skipped_text(int64_t samples) {
  return fmt::format("{} broken {} skipped", format_count(samples),
                     samples == 1 ? "sample" : "samples");
}

std::string step_text(const StepEvent& event, const ConsoleLabels& labels,
                      std::optional<double> accuracy) {
  std::string text = fmt::format("epoch {:.2f}  step {}/{}  loss {}", event.epoch, event.step,
                                 event.steps, metric_text(event.loss));
  if (labels.classifies && accuracy) text += fmt::format("  acc {:.1f} %", 100 * *accuracy);
  text += fmt::format("  lr {:.3g}  {} {}/s  waiting {:.1f} %  ETA {}", event.lr,
                      format_count(std::llround(event.samples_per_second *
                                                static_cast<double>(labels.items_per_sample))),
                      labels.item, 100 * event.wait_share, format_duration(event.seconds_left));
  if (event.skipped_updates > 0) {
    text += fmt::format("  {} {} skipped", format_count(event.skipped_updates),
                        event.skipped_updates == 1 ? "update" : "updates");
  }
  if (event.skipped_samples > 0) {
    text += "  " + skipped_text(event.skipped_samples);
  }
  return text;
}

std::string evaluation_text(const EvaluationEvent& event, const ConsoleLabels& labels) {
  const auto& tally = event.evaluation.tally;
  std::string text = fmt::format("epoch {:.2f}  step {}  {} loss {}", event.epoch, event.step,
                                 labels.part, metric_text(tally.loss()));
  if (labels.classifies) {
    text += fmt::format("  accuracy {}  top-5 {}", percent(tally.accuracy()),
                        percent(tally.top5_accuracy()));
  }
  for (const train::MetricValue& metric : event.evaluation.metrics) {
    text += fmt::format("  {} {}", printable(metric.name), metric_text(metric));
  }
  if (const auto& one = event.evaluation.one_view) {
    text += fmt::format("  one view {}", percent(one->accuracy()));
  }
  if (event.evaluation.skipped > 0) {
    text += "  " + skipped_text(event.evaluation.skipped);
  }
  text += fmt::format("  ({})", format_duration(event.evaluation.seconds));
  return text + (event.best ? "  best so far" : "");
}

std::string table(const Outcome& outcome, const ConsoleLabels& labels) {
  std::string text;
  const auto row = [&](const std::string& name, const std::string& value) {
    text += fmt::format("  {:<18} {}\n", name, value);
  };
  text += !outcome.ended_early.empty()
              ? fmt::format("\nFinished early, after step {} of {}: {}\n", outcome.step,
                            outcome.steps, outcome.ended_early)
          : outcome.finished
              ? "\nFinished\n"
              : fmt::format("\nStopped after step {} of {}\n", outcome.step, outcome.steps);
  if (outcome.step > 0 && outcome.skipped_updates >= outcome.step) {
    text += fmt::format(
        "The model is unchanged: all {} updates were skipped, as their loss or gradients were not "
        "finite\n",
        format_count(outcome.skipped_updates));
  }
  if (outcome.last) {
    const auto& tally = outcome.last->evaluation.tally;
    if (labels.classifies) {
      std::string accuracy = percent(tally.accuracy());
      if (outcome.best && outcome.best->step != outcome.last->step) {
        accuracy +=
            fmt::format("  (best {} at epoch {:.1f})",
                        percent(outcome.best->evaluation.tally.accuracy()), outcome.best->epoch);
      }
      row(labels.part + " accuracy", accuracy);
    }
    row(labels.part + " loss", metric_text(tally.loss()));
    for (const train::MetricValue& metric : outcome.last->evaluation.metrics) {
      row(labels.part + " " + printable(metric.name), metric_text(metric));
    }
  }
  if (outcome.restored_step >= 0) {
    row("weights", fmt::format("those of step {}, the best", outcome.restored_step));
  }
  row("training time",
      fmt::format("{}  (this process {})", format_duration(outcome.training_seconds),
                  format_duration(outcome.seconds)));
  if (outcome.training_seconds > 0) {
    row("speed", fmt::format("{} {}/s",
                             format_count(std::llround(
                                 static_cast<double>(outcome.samples * labels.items_per_sample) /
                                 outcome.training_seconds)),
                             labels.item));
  }
  row("waiting for data", fmt::format("{:.1f} % of the time", 100 * outcome.wait_share));
  if (outcome.skipped_updates > 0) row("updates skipped", format_count(outcome.skipped_updates));
  if (outcome.rewinds > 0) row("rewinds", format_count(outcome.rewinds));
  if (outcome.skipped_samples > 0) row("broken samples", format_count(outcome.skipped_samples));
  if (outcome.last && outcome.last->evaluation.skipped > 0) {
    row("broken in " + labels.part, format_count(outcome.last->evaluation.skipped));
  }
  row("run folder", labels.run_folder);
  if (!outcome.finished)
    text += fmt::format("Resume with: {}\n",
                        shell_line({"gallop", "train", "--resume", labels.run_folder}));
  return text;
}

std::optional<RunAdvice> latest(const LatestAdvice& advice) {
  return advice ? advice() : std::nullopt;
}

std::string text_of(const RunAdvice& advice) {
  return fmt::format("\nAdvice, from the profile of steps {} to {}\n{}", advice.first_step,
                     advice.last_step, advise::advice_text(advice.advice));
}

class TextConsole final : public train::Observer {
 public:
  TextConsole(ConsoleStyle style, const ConsoleLabels& labels, LatestAdvice advice)
      : style_(style), labels_(labels), advice_(std::move(advice)) {}

  void stepped(const StepEvent& event) override {
    if (event.accuracy) accuracy_ = event.accuracy;
    if (style_ == ConsoleStyle::kQuiet) return;
    const double now = monotonic_seconds();
    const double interval = style_ == ConsoleStyle::kLive ? kLiveInterval : kPlainInterval;
    if (now - shown_at_ < interval && event.step != 1) return;
    shown_at_ = now;
    const std::string text = step_text(event, labels_, accuracy_);
    if (style_ == ConsoleStyle::kLive) {
      rewrite(text);
    } else {
      line(text);
    }
  }

  void evaluating() override {
    if (style_ == ConsoleStyle::kLive)
      rewrite(fmt::format("evaluating on the {} split", labels_.part));
  }

  void evaluated(const EvaluationEvent& event) override {
    if (style_ != ConsoleStyle::kQuiet) line(evaluation_text(event, labels_));
  }

  void noted(const std::string& text) override {
    clear();
    print_error("gallop: {}\n", text);
  }

  void finished(const Outcome& outcome) override {
    clear();
    std::fputs(table(outcome, labels_).c_str(), stdout);
    if (const auto advice = latest(advice_)) print_to(stdout, "{}", text_of(*advice));
    std::fflush(stdout);
  }

 private:
  void clear() {
    if (style_ == ConsoleStyle::kLive && live_) std::fputs("\r\x1b[K", stdout);
    live_ = false;
  }
  void rewrite(const std::string& text) {
    const auto width = static_cast<size_t>(terminal_columns() - 1);
    print_to(stdout, "\r{}\x1b[K", text.substr(0, width));
    std::fflush(stdout);
    live_ = true;
  }
  void line(const std::string& text) {
    clear();
    print_to(stdout, "{}\n", text);
    std::fflush(stdout);
  }

  ConsoleStyle style_;
  ConsoleLabels labels_;
  LatestAdvice advice_;
  double shown_at_ = 0;
  std::optional<double> accuracy_;
  bool live_ = false;
};

class JsonConsole final : public train::Observer {
 public:
  JsonConsole(const ConsoleLabels& labels, LatestAdvice advice)
      : labels_(labels), advice_(std::move(advice)) {}

  void stepped(const StepEvent& event) override {
    if (!event.record) return;
    print({{"event", "step"},
           {"step", event.step},
           {"steps", event.steps},
           {"epoch", event.epoch},
           {"loss", event.loss},
           {"accuracy", event.accuracy.value_or(0)},
           {"lr", event.lr},
           {"gradient_norm", event.gradient_norm},
           {"samples_per_second", event.samples_per_second},
           {"wait_share", event.wait_share},
           {"seconds_left", event.seconds_left}});
  }
  void evaluated(const EvaluationEvent& event) override {
    auto object = evaluation(event);
    object["event"] = "evaluation";
    print(object);
  }
  void saved(int64_t step, const std::string& folder) override {
    print({{"event", "checkpoint"}, {"step", step}, {"folder", folder}});
  }
  void noted(const std::string& line) override { print({{"event", "note"}, {"text", line}}); }
  void finished(const Outcome& outcome) override {
    nlohmann::ordered_json object{{"event", outcome.finished ? "finished" : "stopped"},
                                  {"step", outcome.step},
                                  {"steps", outcome.steps},
                                  {"samples", outcome.samples},
                                  {"training_seconds", outcome.training_seconds},
                                  {"seconds", outcome.seconds},
                                  {"wait_share", outcome.wait_share},
                                  {"skipped_updates", outcome.skipped_updates},
                                  {"skipped_samples", outcome.skipped_samples},
                                  {"memory_bytes", peak_resident_bytes()},
                                  {"run_folder", labels_.run_folder}};
    if (outcome.rewinds > 0) object["rewinds"] = outcome.rewinds;
    if (!outcome.ended_early.empty()) object["ended_early"] = outcome.ended_early;
    if (outcome.restored_step >= 0) object["restored_step"] = outcome.restored_step;
    if (outcome.last) object["last"] = evaluation(*outcome.last);
    if (outcome.best) object["best"] = evaluation(*outcome.best);
    if (const auto advice = latest(advice_)) {
      object["profiled_steps"] = {advice->first_step, advice->last_step};
      object["advice"] = nlohmann::ordered_json::parse(advise::advice_json(advice->advice));
    }
    print(object);
  }

 private:
  nlohmann::ordered_json evaluation(const EvaluationEvent& event) const {
    const auto& tally = event.evaluation.tally;
    nlohmann::ordered_json object{{"split", labels_.part},
                                  {"part", labels_.part},
                                  {"step", event.step},
                                  {"epoch", event.epoch},
                                  {"loss", tally.loss()}};
    if (event.evaluation.has_classes) {
      object["accuracy"] = tally.accuracy();
      object["top5"] = tally.top5_accuracy();
    }
    object["samples"] = labels_.evaluated_samples - event.evaluation.skipped;
    object["targets"] = tally.count;
    if (event.evaluation.skipped > 0) object["skipped_samples"] = event.evaluation.skipped;
    object["seconds"] = event.evaluation.seconds;
    object["best"] = event.best;
    object["training_seconds"] = event.training_seconds;
    for (const train::MetricValue& metric : event.evaluation.metrics) {
      object[metric.name] = metric_json(metric);
    }
    if (const auto& one = event.evaluation.one_view) {
      object["one_view"] = {{"loss", one->loss()}, {"accuracy", one->accuracy()}};
    }
    return object;
  }
  static void print(const nlohmann::ordered_json& object) {
    print_to(stdout, "{}\n", json_line(object));
    std::fflush(stdout);
  }

  ConsoleLabels labels_;
  LatestAdvice advice_;
};

}  // namespace

ConsoleStyle default_console_style() {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return isatty(STDOUT_FILENO) != 0 && !dumb ? ConsoleStyle::kLive : ConsoleStyle::kPlain;
}

std::unique_ptr<train::Observer> make_console(ConsoleStyle style, const ConsoleLabels& labels,
                                              LatestAdvice advice) {
  if (style == ConsoleStyle::kJson) {
    return std::make_unique<JsonConsole>(labels, std::move(advice));
  }
  return std::make_unique<TextConsole>(style, labels, std::move(advice));
}

}  // namespace gallop::app
