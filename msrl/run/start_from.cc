#include "msrl/run/start_from.h"

#include <memory>
#include <optional>
#include <span>

#include "msrl/core/check.h"
#include "msrl/run/run_directory.h"

namespace msrl {

void SetFor(const ArtefactHeader& header, bool unaligned, const Registries& registries,
            RunSpec& spec) {
  const AgentEntry& agent = registries.agents.Find(spec.agent);
  RequireTakes(registries.agents, agent, header.kind);
  const std::vector<std::string> shape = agent.settings_for(header);
  spec.agent_settings.insert(spec.agent_settings.begin(), shape.begin(), shape.end());
  if (unaligned) spec.agent_settings.emplace_back("unaligned=true");
}

void StartFrom(const Artefact& artefact, bool unaligned, const Registries& registries,
               RunSpec& spec) {
  SetFor(artefact.header(), unaligned, registries, spec);
  spec.init = ContentsHash(artefact.contents());
  const std::unique_ptr<Env> env = registries.envs.Make(spec.env, spec.env_settings);
  registries.agents.Make(spec.agent, env->spec(), spec.agent_settings, spec.seed)
      ->Initialise(artefact);
}

SegmentLibrary ReadSegments(const std::filesystem::path& place,
                            const std::function<void(const std::string&)>& warn) {
  if (!std::filesystem::is_directory(place)) return SegmentLibrary::LoadFile(place);
  const RunDirectory directory = RunDirectory::OpenForReading(place);
  const std::optional<TensorFile> checkpoint = directory.ReadNewestCheckpoint(warn);
  if (!checkpoint) throw UserError(StrCat(place.string(), ": the run has no checkpoint yet"));
  Archive state(*checkpoint);
  for (const std::string_view part : kLibraryState) state = state.Child(part);
  if (!state.Has("capacity")) {
    throw UserError(StrCat(place.string(), ": the agent '", directory.spec().agent,
                           "' keeps no segment library"));
  }
  return SegmentLibrary::FromState(state);
}

std::string SegmentsFile(const std::filesystem::path& place,
                         const std::function<void(const std::string&)>& warn) {
  if (std::filesystem::is_directory(place)) return ReadSegments(place, warn).Encode();
  return SegmentLibrary::ReadContents(place);
}

void StartWithSegments(std::string_view library, std::string_view source,
                       const Registries& registries, RunSpec& spec) {
  spec.library = ContentsHash(library);
  const std::unique_ptr<Env> env = registries.envs.Make(spec.env, spec.env_settings);
  registries.agents.Make(spec.agent, env->spec(), spec.agent_settings, spec.seed)
      ->TakeSegments(SegmentLibrary::Parse(std::as_bytes(std::span(library)), source), source);
}

ArtefactTexts ProgramTexts() {
  return {{"version", std::string(BuildVersion())}, {"commit", std::string(BuildCommit())}};
}

}  // namespace msrl
