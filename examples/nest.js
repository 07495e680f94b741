// The service in a NestJS application on Express. Nest's own body parsers may stay: what they have read is used.
import 'reflect-metadata'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { collection, createResourceService, memoryStore } from 'http-resource-service'

class AppModule {}
Module({})(AppModule)

const service = createResourceService(memoryStore(), { resources: { '/users': collection() } })
const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
app.use('/api', service)
await app.listen(Number(process.env.PORT ?? 8080), '127.0.0.1')
console.log(`listening on ${await app.getUrl()}`)
