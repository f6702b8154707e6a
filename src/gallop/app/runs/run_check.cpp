#include "gallop/app/runs/run_check.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/app/identity.h"
#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/text.h"
#include "gallop/track/log.h"
#include "gallop/track/run_folder.h"
#include "gallop/train/checkpoint.h"

namespace gallop::app {

namespace {

using track::CodeState;
using track::DataIdentity;
using track::Identity;

constexpr size_t kShortCommit = 12;
constexpr size_t kMostNamed = 5;

std::string describe_commit(const CodeState& code) {
  if (code.commit.empty()) return "no commit";
  return "commit " + code.commit.substr(0, kShortCommit) +
         (code.branch.empty() ? "" : " of " + code.branch) +
         (code.patch_bytes > 0 ? " and uncommitted changes" : "");
}

Finding check_program(const Identity& then, const Identity& now) {
  if (then.program == now.program) return {"program", true, "the same: gallop " + now.version};
  if (then.version == now.version) {
    return {"program", false, "a different build of gallop " + now.version};
  }
  return {"program", false, fmt::format("gallop {} then, {} now", then.version, now.version)};
}

Finding check_code(const Identity& then, const std::optional<CodeState>& now) {
  if (!then.code) return {"code", true, "was not started in a git repository"};
  const CodeState& code = *then.code;
  if (!now) {
    return {"code", false,
            fmt::format("{} is no longer a git repository; was {}", code.folder,
                        describe_commit(code))};
  }
  if (code.commit != now->commit) {
    return {"code", false,
            fmt::format("{} then, {} now, in {}", describe_commit(code), describe_commit(*now),
                        code.folder)};
  }
  const bool is_same = code.patch == now->patch && code.patch_bytes == now->patch_bytes;
  if (!is_same) {
    return {"code", false,
            fmt::format("{}, with different uncommitted changes, in {}", describe_commit(code),
                        code.folder)};
  }
  const std::string left_out =
      code.left_out.empty() ? "" : "; not compared: " + join_names(code.left_out, "and");
  return {"code", true, "the same: " + describe_commit(code) + left_out};
}

std::string names(const char* word, const std::vector<std::string>& files) {
  if (files.empty()) return {};
  const size_t named = std::min(files.size(), kMostNamed);
  const std::vector<std::string> first(files.begin(), files.begin() + static_cast<int64_t>(named));
  return fmt::format("; {} {}: {}{}", files.size(), word, fmt::join(first, ", "),
                     named < files.size() ? ", ..." : "");
}

// The differing files, if the runs' folder still has the listing.
std::string differences(const DataIdentity& then, const DataIdentity& now,
                        const fs::path& listings) {
  const auto listing = [&](const DataIdentity& data) {
    const fs::path file = listings / (data.checksum + ".txt");
    return track::parse_listing(read_file(file), file.string());
  };
  try {
    const auto difference = track::difference(listing(then), listing(now));
    return names("changed", difference.changed) + names("gone", difference.missing) +
           names("new", difference.added);
  } catch (const Error&) {
    return {};
  }
}

// The same files now. The names of those that a table lists are in the listing.
DataIdentity read_again(const DataIdentity& then, const track::IdentityQuestion& question) {
  if (!then.is_named) return track::read_data_identity(then.path, question);
  const fs::path listing = question.listings / (then.checksum + ".txt");
  NamedFiles files{.folder = then.path};
  for (const auto& file : track::parse_listing(read_file(listing), listing.string()).files) {
    files.names.push_back(file.name);
  }
  return track::read_data_identity(files, question);
}

Finding check_data(const DataIdentity& then, const track::IdentityQuestion& question) {
  if (then.is_named && then.checksum.empty()) {
    return {"data", true, "not compared, as it was too large to read: " + then.path};
  }
  DataIdentity now;
  try {
    now = read_again(then, question);
  } catch (const Error& error) {
    return {"data", false, error.what()};
  }
  const std::string size =
      fmt::format("{}, {} {} of {}", then.path, format_count(then.files),
                  then.files == 1 ? "file" : "files", format_bytes(then.bytes));
  const bool is_size_same = then.files == now.files && then.bytes == now.bytes;
  if (is_size_same && (then.checksum.empty() || now.checksum.empty())) {
    return {"data", true,
            fmt::format("the same by size (too large to compare contents): {}", size)};
  }
  if (is_size_same && then.checksum == now.checksum) return {"data", true, "the same: " + size};
  return {"data", false,
          fmt::format("changed: {} then, {} of {} now{}", size, format_count(now.files),
                      format_bytes(now.bytes), differences(then, now, question.listings))};
}

// `what`: "plug-in" or "model".
Finding check_file(const char* what, const DataIdentity& then,
                   const track::IdentityQuestion& question) {
  try {
    const bool is_same = track::read_data_identity(then.path, question).checksum == then.checksum;
    return {what, is_same, (is_same ? "the same: " : "a different file: ") + then.path};
  } catch (const Error& error) {
    return {what, false, error.what()};
  }
}

Finding check_machine(const fs::path& run) {
  const Hardware now = read_hardware();
  const Hardware then = track::RunFolder::read_info(run).hardware;
  if (then.host.empty()) return {"machine", true, "unknown for this run"};
  if (then.cpu_model == now.cpu_model && then.threads == now.threads &&
      then.instruction_sets == now.instruction_sets) {
    return {"machine", true,
            fmt::format("the same: {} compute threads on {}", now.threads, now.cpu_model)};
  }
  return {"machine", true,
          fmt::format("different, so rounding may differ: {} compute threads on {} ({}) then",
                      then.threads, then.cpu_model, then.instruction_sets)};
}

Finding check_log(const fs::path& run) {
  const track::Log log = track::read_log(run / "metrics.log");
  if (log.damaged_lines == 0) {
    return {
        "log", true,
        fmt::format("whole: {} records", format_count(static_cast<int64_t>(log.records.size())))};
  }
  return {"log", false,
          fmt::format("damaged: {} of {} lines", format_count(log.damaged_lines),
                      format_count(log.damaged_lines + static_cast<int64_t>(log.records.size())))};
}

Finding check_checkpoints(const fs::path& run) {
  const auto all = train::CheckpointStore(run / "checkpoints").list();
  for (const auto& one : all) train::CheckpointStore::verify(one);
  return {"checkpoints", true, all.empty() ? "none" : fmt::format("whole: {}", all.size())};
}

// Compares with the last recorded identity.
std::vector<Finding> check_record(const fs::path& run) {
  const auto identities = track::read_identities(run);
  if (identities.empty()) return {{"record", false, "this run has no provenance record"}};
  const Identity& then = identities.back();
  track::IdentityQuestion question = identity_question({}, run.parent_path(), 0);
  if (then.code) question.folder = then.code->folder;
  const Identity now = track::read_identity(question);
  std::vector<Finding> findings{check_program(then, now), check_code(then, now.code)};
  track::IdentityQuestion of_files = question;
  of_files.listings.clear();
  for (const DataIdentity& one : then.plugins) {
    findings.push_back(check_file("plug-in", one, of_files));
  }
  for (const DataIdentity& one : then.models) {
    findings.push_back(check_file("model", one, of_files));
  }
  for (const DataIdentity& data : then.data) findings.push_back(check_data(data, question));
  if (identities.size() > 1) {
    findings.push_back(
        {"record", true,
         fmt::format("valid from step {} on; it was different before", format_count(then.step))});
  }
  return findings;
}

}  // namespace

std::vector<Finding> check_run(const fs::path& run) {
  std::vector<Finding> findings;
  const auto look = [&](const char* of, const std::function<std::vector<Finding>()>& check) {
    try {
      for (Finding& one : check()) findings.push_back(std::move(one));
    } catch (const Error& error) {
      findings.push_back({of, false, error.what()});
    }
  };
  look("record", [&] { return check_record(run); });
  look("machine", [&] { return std::vector{check_machine(run)}; });
  look("log", [&] { return std::vector{check_log(run)}; });
  look("checkpoints", [&] { return std::vector{check_checkpoints(run)}; });
  return findings;
}

bool is_same(const std::vector<Finding>& findings) {
  return std::all_of(findings.begin(), findings.end(),
                     [](const Finding& one) { return one.is_same; });
}

void print(const std::vector<Finding>& findings) {
  for (const Finding& one : findings) fmt::print("{:<12} {}\n", one.of, printable(one.text));
}

}  // namespace gallop::app
