//! When the run starts its services, looks whether they live, and ends them.

use super::services::{FOLDER, Service, Services, end, end_left};
use crate::cause::Bail;
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::ground::command::shell;
use crate::leaf::{self, LaunchId, Records, Spec};
use crate::untrusted;
use anyhow::{Result, anyhow};
use std::time::Duration;

/// No deadline: a hundred years.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Run<'_> {
    /// Ends what a killed conductor left, and starts the services, once the ground holds a tree and is set up.
    pub(in crate::conductor) fn start_services(&mut self, tree: git2::Oid) -> Result<()> {
        let records = self.ready()?.ground.records().join(FOLDER);
        let records = Records::new(records)?.with_shim(&self.ask.program);
        end(&records)?;
        end_left(&self.home)?;
        let commands = self.settings.config.ground.services.clone();
        if commands.is_empty() {
            return Ok(());
        }
        self.bring_ground(tree)?;
        let ground = &self.ready()?.ground;
        let (cwd, env) = (
            ground.path().to_owned(),
            ground.environment(&self.suite_env()),
        );
        let services = self.services.insert(Services {
            records,
            all: Vec::new(),
        });
        let mut said = Vec::new();
        for (index, command) in commands.into_iter().enumerate() {
            let name = format!("service-{}", index + 1);
            let output = services.records.out(&name);
            let spec = Spec {
                name: name.clone(),
                launch: LaunchId::random()?,
                argv: shell(&command),
                cwd: cwd.clone(),
                env: env.clone(),
                stdin: None,
                stdout: output.clone(),
                stderr: output.clone(),
                wall: FOR_EVER,
                grace: self.settings.grace(),
                output_cap: Some(self.settings.output_cap()),
                watch: None,
                sandbox: None,
            };
            // It is not waited for as other leaves are: its records tell, as they would tell a later conductor.
            drop(leaf::start(&services.records, &spec)?);
            said.push(format!(
                "the service `{command}` is started; it writes to {}",
                output.display()
            ));
            services.all.push(Service {
                name,
                command,
                launch: spec.launch,
                ended: None,
            });
        }
        for said in said {
            self.say(Kind::Preflight, said)?;
        }
        Ok(())
    }

    /// Needs-user when a service is gone: what suites say without it says nothing about a tree.
    pub(in crate::conductor) fn services_live(&mut self) -> Result<()> {
        self.tell_of_services()?;
        let Some(services) = &self.services else {
            return Ok(());
        };
        let mut all = services.all.iter();
        let Some((service, end)) = all.find_map(|s| Some((s, s.ended.as_ref()?))) else {
            return Ok(());
        };
        let command = &service.command;
        let log = services.records.out(&service.name);
        Err(Bail::needs_user(format!(
            "The service `{command}` (ground.services) is gone, and no suite is run without it: {end}. It has to stay in \
             the foreground: what goes on in the background when its command ends is ended with it. See to it that it runs, \
             then run again.\n{}",
            untrusted::of_log(&log, self.settings.tail_bytes())
        ))
        .into())
    }

    /// Says once of a service that it has ended, whatever the run is at.
    pub(in crate::conductor) fn tell_of_services(&mut self) -> Result<()> {
        let mut said = Vec::new();
        if let Some(services) = &mut self.services {
            while let Some(service) = services.newly_gone()? {
                let (command, end) = (&service.command, service.ended.as_deref());
                let end = end.unwrap_or_default();
                said.push(format!("the service `{command}` has ended: {end}"));
            }
        }
        said.into_iter()
            .try_for_each(|said| self.say(Kind::Check, said))
    }

    /// Ends the services with the run, and what killed conductors have left of theirs in grounds that nobody holds.
    pub(in crate::conductor) fn end_services(&mut self) -> Result<()> {
        if let Some(services) = self.services.take() {
            return end(&services.records).map_err(|e| anyhow!("ending the services: {e:#}"));
        }
        end_left(&self.home)
    }

    /// Other grounds of this run than the one that the services were started for have its number: what is in a
    /// service's port or database is found by it.
    pub(in crate::conductor) fn share_slot(
        &self,
        ground: &mut crate::ground::Ground,
    ) -> Result<()> {
        if self.services.is_some() {
            ground.share_slot(self.ready()?.ground.slot());
        }
        Ok(())
    }
}
