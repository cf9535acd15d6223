// Pretrainers: what learns from source episodes and leaves an artefact behind. A new one is a file
// with a class and a row in BuiltinPretrainers(), and is tested by being listed.
#ifndef MSRL_TRANSFER_PRETRAINER_H_
#define MSRL_TRANSFER_PRETRAINER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msrl/artefacts/artefact.h"
#include "msrl/core/config.h"
#include "msrl/core/registry.h"
#include "msrl/core/statistics.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/files/state.h"
#include "msrl/paper/figures.h"
#include "msrl/transfer/value_target.h"

namespace msrl {

// Figures by the key of their column.
using PretrainFigures = std::map<std::string, double>;

struct PretrainResult {
  std::string artefact;  // the contents of its file
  PretrainFigures figures;
};

// One training under way. Deterministic: in pieces, saved and loaded between them, it ends bit for
// bit as without.
class Pretraining {
 public:
  virtual ~Pretraining() = default;

  virtual int done() const = 0;
  virtual int total() const = 0;
  // The next of them; some milliseconds. RunError if a number goes bad.
  virtual void Advance() = 0;
  // After the last: measures on held-out episodes.
  virtual PretrainResult Finish() = 0;

  // All that later pieces depend on; is read into a training of the same job.
  virtual void Visit(const Archive& state) = 0;
};

struct PretrainJob {
  std::vector<std::string> sources;  // families to learn from
  std::uint64_t seed = 0;
  ArtefactTexts made;  // provenance (ArtefactHeader), complete but for what the pretrainer adds
};

// A pretrainer with its options and the data made ready, for any number of jobs.
class Pretrainer {
 public:
  virtual ~Pretrainer() = default;
  // UserError if there are no episodes of the sources. The pretrainer must outlive the training.
  virtual std::unique_ptr<Pretraining> Start(const PretrainJob& job) const = 0;
  // How many examples it made of the training and of the held-out episodes.
  virtual std::pair<std::int64_t, std::int64_t> examples() const = 0;
};

// A figure of the result.
struct PretrainColumn {
  std::string key;
  std::string title;
};

struct PretrainerEntry {
  std::string id;  // the kind of its artefacts
  std::string description;
  std::vector<PretrainColumn> columns;
  // The paper's figure in a column for a family or "mixed"; empty if it has none.
  std::function<std::optional<PaperFigure>(std::string_view source, std::string_view column)> paper;
  // Settings are "key=value"; UserError on those that can't be.
  // All options with their values, defaults where none is given.
  std::function<std::vector<ConfigField>(std::span<const std::string> settings)> options;
  // Values that the episodes must have ("mc", "expert", ...).
  std::function<std::vector<ValueTarget>(std::span<const std::string> settings)> targets;
  // All that can be known of the artefact before there is one. UserError if such settings make
  // figures but no artefact.
  std::function<ArtefactHeader(std::span<const std::string> settings)> announce;
  // Instances of the split "train" to learn from, held-out ones to measure on.
  std::function<std::unique_ptr<Pretrainer>(std::span<const std::string> settings,
                                            const EpisodeFile& train, const EpisodeFile& held_out)>
      prepare;

  // The job of training on some families, with all of its provenance: the hashes of the episodes,
  // and which msrl it is (`program`).
  PretrainJob JobOf(std::span<const std::string> settings, std::vector<std::string> sources,
                    std::string_view dataset, std::string_view held_out, std::uint64_t seed,
                    ArtefactTexts program) const;
};

// The row of a pretrainer class with
//   static Config Configure(std::span<const std::string> settings);
//   static std::vector<PretrainColumn> Columns();
//   static std::optional<PaperFigure> Paper(std::string_view source, std::string_view column);
//   static std::vector<ValueTarget> Targets(const Config& config);
//   static ArtefactHeader Announce(const Config& config);
//   Concrete(const Config& config, const EpisodeFile& train, const EpisodeFile& held_out);
template <typename Concrete>
PretrainerEntry MakePretrainerEntry(std::string id, std::string description) {
  using Settings = std::span<const std::string>;
  PretrainerEntry entry;
  entry.id = std::move(id);
  entry.description = std::move(description);
  entry.columns = Concrete::Columns();
  entry.paper = Concrete::Paper;
  entry.options = [](Settings settings) { return ListFields(Concrete::Configure(settings)); };
  entry.targets = [](Settings settings) {
    return Concrete::Targets(Concrete::Configure(settings));
  };
  entry.announce = [](Settings settings) {
    return Concrete::Announce(Concrete::Configure(settings));
  };
  entry.prepare = [](Settings settings, const EpisodeFile& train, const EpisodeFile& held_out) {
    return std::unique_ptr<Pretrainer>(
        std::make_unique<Concrete>(Concrete::Configure(settings), train, held_out));
  };
  return entry;
}

class PretrainerRegistry : public Registry<PretrainerEntry> {
 public:
  explicit PretrainerRegistry(std::vector<PretrainerEntry> entries = {})
      : Registry("kind of pretraining", std::move(entries)) {}

  // The row of a kind; of none, the first. UserError also if there is no first.
  const PretrainerEntry& FindOrFirst(std::string_view kind) const;
};

// The list of all pretrainers that come with msrl.
const PretrainerRegistry& BuiltinPretrainers();

struct PretrainingOptions {
  // Where it keeps its state, so that a killed one can go on; empty: nowhere.
  std::filesystem::path checkpoint;
  double checkpoint_seconds = 60.0;
  bool begin_anew = false;  // if the checkpoint is of another job, instead of a UserError
  std::function<bool()> stop;
  std::function<void(int done, int total)> progress;  // now and then
};

// Begins the job, or goes on with it if the checkpoint is there; the checkpoint stays. Empty if it
// was stopped. UserError if the checkpoint is of another job.
std::optional<PretrainResult> RunPretraining(const Pretrainer& pretrainer, const PretrainJob& job,
                                             const PretrainingOptions& options);

}  // namespace msrl

#endif  // MSRL_TRANSFER_PRETRAINER_H_
