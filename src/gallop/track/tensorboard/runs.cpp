#include "gallop/track/tensorboard/runs.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"
#include "gallop/track/evaluation_report.h"
#include "gallop/track/foreign_run.h"
#include "gallop/track/histogram.h"
#include "gallop/track/log.h"
#include "gallop/track/points.h"
#include "gallop/track/run_summary.h"
#include "gallop/track/tensorboard/event_file.h"

namespace gallop::track::tensorboard {

namespace {

Option option_of(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const auto number = parse_number<double>(text)) return *number;
  return text;
}

std::string text_of(const Option& option) {
  if (const auto* truth = std::get_if<bool>(&option)) return *truth ? "true" : "false";
  if (const auto* number = std::get_if<double>(&option)) return config::number_text(*number);
  return std::get<std::string>(option);
}

bool is_event_file(const fs::path& path) {
  return path.filename().string().find("tfevents") != std::string::npos;
}

std::vector<fs::path> event_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && is_event_file(entry.path())) files.push_back(entry.path());
  }
  // File names begin with their time.
  std::sort(files.begin(), files.end());
  return files;
}

// Collects the folders with event files, recursively; returns an error of the top folder.
std::error_code collect_folders(const fs::path& folder, std::set<fs::path>& found,
                                std::vector<std::string>& unreadable) {
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code inner;
    if (entry->is_directory(inner) && !entry->is_symlink(inner)) {
      inner = collect_folders(entry->path(), found, unreadable);
      if (!inner) continue;
      unreadable.push_back(fmt::format("{}: cannot be read: {}", printable(entry->path().string()),
                                       inner.message()));
    } else if (entry->is_regular_file(inner) && is_event_file(entry->path())) {
      found.insert(folder);
    } else if (is_event_file(entry->path())) {
      unreadable.push_back(fmt::format("{}: no readable file", printable(entry->path().string())));
    }
  }
  return error;
}

ForeignRun::Ending ending_of(Ending ending) {
  switch (ending) {
    case Ending::kSuccess: return ForeignRun::Ending::kFinished;
    case Ending::kFailure: return ForeignRun::Ending::kStopped;
    case Ending::kRunning: break;
  }
  return ForeignRun::Ending::kUnknown;
}

Buckets buckets_of(const Histogram& histogram) {
  Buckets buckets{.tag = "weights/" + histogram.name,
                  .step = histogram.step,
                  .time = histogram.time,
                  .buckets = {}};
  const auto parts = static_cast<double>(histogram.counts.size());
  const auto edge = [&](size_t i) {
    const double share = static_cast<double>(i) / parts;
    return histogram.least * (1 - share) + histogram.most * share;
  };
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    buckets.buckets.push_back({edge(i), edge(i + 1), static_cast<double>(histogram.counts[i])});
  }
  return buckets;
}

std::vector<Picture> pictures_of(const fs::path& run, const RunSummary& summary) {
  std::vector<Picture> pictures;
  const auto report = read_evaluation_report(run);
  if (!report) return pictures;
  for (const auto& mistake : report->mistakes) {
    const auto name = [&](int64_t label) { return report->classes[static_cast<size_t>(label)]; };
    Picture picture{.tag = fmt::format("mistakes/{:02} {} taken for {}", pictures.size(),
                                       name(mistake.truth), name(mistake.guess)),
                    .step = report->step,
                    .time = summary.created + summary.seconds,
                    .width = mistake.width,
                    .height = mistake.height,
                    .channels = mistake.channels,
                    .png = read_file(evaluation_report_of(run) / mistake.image)};
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

std::string describe(const std::vector<Damage>& damages, const fs::path& file) {
  size_t bytes = 0;
  for (const Damage& damage : damages) bytes += damage.bytes;
  const auto places = static_cast<int64_t>(damages.size());
  return fmt::format("{}: damaged at {} {}, the first at byte {} ({}); {} bytes were skipped",
                     printable(file.filename().string()), format_count(places),
                     places == 1 ? "place" : "places", damages.front().at, damages.front().what,
                     format_count(static_cast<int64_t>(bytes)));
}

// Files with nothing but their version, as of a program that has logged nothing.
[[noreturn]] void refuse_empty(const fs::path& folder, const std::vector<std::string>& damages) {
  std::string text = fmt::format("{}: contains no values", printable(folder.string()));
  for (const std::string& damage : damages) text += "; " + damage;
  throw DataError(text);
}

}  // namespace

int64_t export_run(const fs::path& run, const fs::path& folder) {
  const RunSummary summary = summarize_run(run);
  const Log log = read_log(run / "metrics.log");
  const fs::path target = folder / summary.name;
  make_folders(target);
  const auto old = event_files(target);
  for (const fs::path& file : old) {
    if (is_own_event_file(file)) continue;
    throw UsageError(fmt::format(
        "{}: another program, or an older Gallop, has written this file of the run '{}'; export to "
        "another folder, or remove it",
        printable(file.string()), printable(summary.name)));
  }
  std::map<std::string, Option> options;
  for (const auto& [name, text] : summary.params) options.emplace(name, option_of(text));
  EventFileWriter writer(target / event_file_name(summary.created), summary.created);
  writer.write_options(options, summary.created);
  int64_t points = 0;
  for_each_point(log, [&](const Point& point) {
    writer.write(Scalar{foreign_name(point.metric), point.step, point.time, point.value});
    ++points;
  });
  for (const Histogram& histogram : read_histograms(run)) writer.write(buckets_of(histogram));
  for (const Picture& picture : pictures_of(run, summary)) writer.write(picture);
  if (summary.state != RunState::kTraining) {
    const bool is_good = summary.state == RunState::kFinished;
    writer.write_end(is_good ? Ending::kSuccess : Ending::kFailure,
                     summary.created + summary.seconds);
  }
  writer.finish();
  for (const fs::path& file : old) fs::remove(file);
  return points;
}

std::vector<EventFolder> find_runs(const fs::path& folder, std::vector<std::string>& unreadable) {
  std::set<fs::path> folders;
  if (const std::error_code error = collect_folders(folder, folders, unreadable); error) {
    throw UsageError(
        fmt::format("{}: cannot be read: {}", printable(folder.string()), error.message()));
  }
  if (folders.empty()) {
    throw UsageError(
        fmt::format("{}: contains no TensorBoard files (*tfevents*)", printable(folder.string())));
  }
  const fs::path whole = fs::absolute(folder / ".").lexically_normal();
  const std::string own_name = whole.parent_path().filename().string();
  std::vector<std::string> names;
  for (const fs::path& one : folders) {
    const std::string name = one.lexically_relative(folder).string();
    names.push_back(name == "." ? own_name : name);
  }
  names = run_names(names);
  std::vector<EventFolder> runs;
  for (const fs::path& one : folders) runs.push_back({one, std::move(names[runs.size()])});
  return runs;
}

Imported import_run(const EventFolder& from, const fs::path& runs, const std::string& name) {
  ForeignRun run;
  run.set_ending(ForeignRun::Ending::kFinished);
  int64_t left_out = 0;
  bool is_empty = true;
  std::vector<std::string> torn;
  std::vector<Damage> damages;  // Damages of one file.
  fs::path file;
  const EventVisitor visitor{
      .scalar =
          [&](const Scalar& scalar) {
            is_empty = false;
            run.add(scalar.tag, scalar.step, scalar.time, scalar.value);
          },
      .options =
          [&](const std::map<std::string, Option>& options) {
            is_empty = false;
            for (const auto& [option, value] : options) run.set_option(option, text_of(value));
          },
      .end =
          [&](Ending ending) {
            is_empty = false;
            run.set_ending(ending_of(ending));
          },
      .torn =
          [&](size_t bytes) {
            torn.push_back(fmt::format("{}: the last event is incomplete; {} bytes were skipped",
                                       printable(file.filename().string()), bytes));
          },
      .damaged = [&](const Damage& damage) { damages.push_back(damage); }};
  for (const fs::path& one : event_files(from.folder)) {
    file = one;
    damages.clear();
    left_out += read_event_file(file, visitor);
    if (!damages.empty()) torn.push_back(describe(damages, file));
  }
  if (is_empty && left_out == 0) refuse_empty(from.folder, torn);
  run.number_points_without_step();
  run.make(runs, name, "tensorboard");
  Imported imported = run.summary();
  if (left_out > 0) {
    imported.notes.push_back(
        fmt::format("{} non-scalar values were skipped", format_count(left_out)));
  }
  imported.notes.insert(imported.notes.end(), torn.begin(), torn.end());
  return imported;
}

}  // namespace gallop::track::tensorboard
