#pragma once

#include <string>

#include <gtest/gtest.h>

#include "gallop/tune/store.h"
#include "gallop/tune/tuner.h"

namespace gallop::tune {

/// A study that a test keeps in a storage: one number between -1 and 1.
inline StudySettings stored_settings(const std::string& name = "a", int64_t trials = 1000) {
  return {.name = name,
          .seed = 3,
          .space = Space({{"x", Interval{.low = -1, .high = 1}}}, {}),
          .objectives = {{"loss", false}},
          .trials = trials};
}

/// The message of the expected error; a test failure if there is none.
template <typename Thrown, typename Call>
std::string message(const Call& call) {
  try {
    call();
  } catch (const Thrown& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// A store keeps a study with its first events. `refuse_second` makes it refuse the second event of
/// each study from then on: such a study is not made.
template <typename RefuseSecond>
void expect_first_events_or_nothing(StudyStore& store, const RefuseSecond& refuse_second) {
  const auto queued = [](int64_t number, double x) {
    return Event{.kind = Event::Kind::kQueued, .trial = number, .point = {x}};
  };
  const std::vector<Event> events = {queued(0, 0.5), queued(1, -0.25)};
  store.create(stored_settings("a"), events);
  {
    Tuner tuner(store.open("a"));
    EXPECT_EQ(tuner.ask("w").trial.point, Point{0.5});
    EXPECT_EQ(tuner.ask("v").trial.point, Point{-0.25});
  }
  store.remove("a");

  refuse_second();
  EXPECT_THROW(store.create(stored_settings("a"), events), DeviceError);
  EXPECT_EQ(store.names().size(), 0u);
  store.create(stored_settings("a"), {events[0]});
  EXPECT_EQ(store.read("a").trials().size(), 1u);
}

}  // namespace gallop::tune
